// Walks of an automaton that may search far, find nothing, and begin again one character later.
//
// Of `\s+$`, a walk reads a run of spaces to its end, and if text follows, only the first space is settled, as a gap. The
// next walk would read the run again: quadratic time, which engines take. But a walk that comes to a place in a state
// in which an earlier one went on and found nothing more will find nothing more either (Reps 1998, "Maximal-munch"
// tokenization in linear time). So the states of long vain searches are kept, by place, until the text is past them.
// Costs a walk without the skipping of runs, and two bytes of memory a byte of text for each state that meets a place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "automaton.h"

namespace tokenweir {

// How many states a walk can pass through without end, beyond what it has matched, and then find nothing more.
// `transitions`: rows of `width` entries; the last column is the end of the text.
inline size_t count_vain_states(const std::vector<uint16_t>& transitions, size_t width) {
  const size_t n_states = transitions.size() / width;
  const auto each_step = [&](auto&& use) {  // from a state to another without a match
    for (size_t i = 0; i < transitions.size(); i++)
      if (!(transitions[i] & kMatchEnds) && (transitions[i] & kStateMask) != kDead) use(i / width, transitions[i]);
  };
  std::vector<size_t> starts(n_states + 2), sources;
  each_step([&](size_t, size_t target) { starts[target + 2]++; });
  for (size_t state = 0; state < n_states; state++) starts[state + 2] += starts[state + 1];
  sources.resize(starts.back());
  each_step([&](size_t source, size_t target) { sources[starts[target + 1]++] = source; });
  const auto each_source = [&](size_t target, auto&& use) {
    for (size_t i = starts[target]; i < starts[target + 1]; i++) use(sources[i]);
  };

  std::vector<bool> may_fail(n_states);  // from here, a walk can end without a further match
  std::vector<size_t> queue;
  const auto fails = [&](size_t state) {
    if (may_fail[state]) return;
    may_fail[state] = true;
    queue.push_back(state);
  };
  for (size_t i = 0; i < transitions.size(); i++)
    if (transitions[i] == kDead) fails(i / width);
  for (size_t i = 0; i < queue.size(); i++) each_source(queue[i], fails);

  std::vector<bool> vain = may_fail;  // and of these, the ones from which it need not end
  std::vector<size_t> ways(n_states);
  each_step([&](size_t source, size_t target) { ways[source] += vain[target]; });
  queue.clear();
  for (size_t state = 0; state < n_states; state++)
    if (vain[state] && ways[state] == 0) queue.push_back(state);
  for (size_t i = 0; i < queue.size(); i++) {
    vain[queue[i]] = false;
    each_source(queue[i], [&](size_t source) {
      if (--ways[source] == 0 && vain[source]) queue.push_back(source);
    });
  }
  return static_cast<size_t>(std::count(vain.begin(), vain.end(), true));
}

class FailedSearches {
 public:
  // As `Automaton::token_end`.
  const uint8_t* token_end(const Automaton& automaton, const uint8_t* p, const uint8_t* end, bool& gap) {
    if (p >= until_) forget(p);
    uint16_t flags = 0;
    const uint8_t *last = p, *at = p;
    uint32_t state = 0;
    for (;;) {
      uint32_t length = 0;
      const uint16_t entry = at < end ? automaton.at(state, at, length) : automaton.at_end(state);
      if (entry & kMatchEnds) {
        last = at;
        flags = entry;
      }
      state = entry & kStateMask;
      if (state == kDead) break;
      at += length;
      if (at < until_ && failed(at, state)) break;
    }
    if (at - last > kFar) keep(automaton, p, last, at);
    gap = flags & kGap;
    return last;
  }

 private:
  static constexpr ptrdiff_t kFar = 64;  // reading so much twice is no matter

  std::vector<std::vector<uint16_t>> layers_;  // each has a state by place, or kDead
  const uint8_t *from_ = nullptr, *until_ = nullptr;

  void forget(const uint8_t* p) {
    layers_.clear();
    from_ = until_ = p;
  }

  bool failed(const uint8_t* at, uint32_t state) const {
    for (const auto& layer : layers_)
      if (layer[static_cast<size_t>(at - from_)] == state) return true;
    return false;
  }

  // Walks again from `p`, and keeps the states after `last`; the text ends behind `reached`, or the walk does.
  void keep(const Automaton& automaton, const uint8_t* p, const uint8_t* last, const uint8_t* reached) {
    if (reached > until_) {
      until_ = reached;
      for (auto& layer : layers_) layer.resize(static_cast<size_t>(until_ - from_), kDead);
    }
    uint32_t state = 0;
    while (p < reached) {
      uint32_t length;
      state = automaton.at(state, p, length) & kStateMask;
      p += length;
      if (p > last && p < reached) put(static_cast<size_t>(p - from_), static_cast<uint16_t>(state));
    }
  }

  void put(size_t place, uint16_t state) {
    for (auto& layer : layers_) {
      if (layer[place] == kDead) {
        layer[place] = state;
        return;
      }
    }
    layers_.emplace_back(static_cast<size_t>(until_ - from_), kDead);
    layers_.back()[place] = state;
  }
};

}  // namespace tokenweir
