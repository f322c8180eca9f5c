// Walks of an automaton that may search far, find nothing, and begin again one character later.
//
// Of `\s+$`, a walk reads a run of spaces to its end, and if text follows, only the first space is settled, as a gap.
// The next walk would read the run again: quadratic time, which engines take. But a walk that comes to a place in a state
// in which an earlier one went on and found nothing more will find nothing more either (Reps 1998, "Maximal-munch"
// tokenization in linear time). So the states of long vain searches are kept, by place, until the text is past them.
// Costs two bytes of memory a byte of such text for each state that comes to a place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/automaton.h"

namespace tokenweir {

class ScanMemo {
 public:
  // As `Automaton::token_end`. A walk is only watched where an earlier one has failed.
  template <class Table>
  const uint8_t* token_end(const Table& automaton, const uint8_t* p, const uint8_t* end, bool& gap) {
    const uint8_t* reached;
    const auto fails = [&](const uint8_t* at, uint32_t state) { return at < until_ && failed(at, state); };
    const uint8_t* const last =
        p < until_ ? walk(automaton, p, end, gap, reached, fails) : automaton.token_end(p, end, gap, reached);
    if (reached - last > kFar) keep(automaton, p, last, reached);
    return last;
  }

 private:
  static constexpr ptrdiff_t kFar = 64;  // reading so much twice is no matter

  std::vector<std::vector<uint16_t>> layers_;  // each has a state by place, or kDead
  const uint8_t *from_ = nullptr, *until_ = nullptr;

  bool failed(const uint8_t* at, uint32_t state) const {
    for (const auto& layer : layers_)
      if (layer[static_cast<size_t>(at - from_)] == state) return true;
    return false;
  }

  // Walks again from `p`, and keeps the states after `last`; the text ends behind `reached`, or the walk does.
  template <class Table>
  void keep(const Table& automaton, const uint8_t* p, const uint8_t* last, const uint8_t* reached) {
    if (p >= until_) {
      layers_.clear();
      from_ = until_ = p;
    }
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
