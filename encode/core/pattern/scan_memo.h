// Memoizes failed searches, for automata whose walks may search far, fail, and restart one character later.
//
// Example: with `\s+$` a walk reads a run of spaces to its end. If text follows, the walk decides only the first space,
// as a gap, and the next walk reads the run again. That takes quadratic time, as it does in regex engines. But the
// automaton has no memory: if one walk passed a place in some state and failed, every later walk that reaches the place
// in this state fails too (Reps, "Maximal-munch tokenization in linear time", 1998). The memo keeps the states of long
// failed searches by place, until the walks are past them. It costs two bytes for each byte of such text and each state
// that reaches it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pattern/automaton.h"

namespace tokenweir {

class ScanMemo {
 public:
  // `Automaton::token_end` in linear time. The memo is only consulted where an earlier walk has failed.
  template <class Table>
  const uint8_t* token_end(const Table& automaton, const uint8_t* p, const uint8_t* end, bool& gap) {
    const uint8_t* reached;
    const auto fails = [&](const uint8_t* at, uint32_t state) { return at < until_ && failed(at, state); };
    const uint8_t* const last =
        p < until_ ? walk(automaton, p, end, gap, reached, fails) : automaton.token_end(p, end, gap, reached);
    if (reached - last > kMinRemembered) remember(automaton, p, last, reached);
    return last;
  }

 private:
  static constexpr ptrdiff_t kMinRemembered = 64;  // shorter failed searches are not worth a memo

  std::vector<std::vector<uint16_t>> layers_;  // each has one state, or kDead, per place
  const uint8_t *from_ = nullptr, *until_ = nullptr;

  bool failed(const uint8_t* at, uint32_t state) const {
    for (const auto& layer : layers_)
      if (layer[static_cast<size_t>(at - from_)] == state) return true;
    return false;
  }

  // Repeats the walk from `p` up to `reached`, and remembers the states after `last`.
  template <class Table>
  void remember(const Table& automaton, const uint8_t* p, const uint8_t* last, const uint8_t* reached) {
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
