// Long lookahead and lookbehind (encode/pattern/context.py): one pass over the text, from its end to its start,
// converts the class of each character to the symbol that a walk then reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "pattern/automaton.h"

namespace tokenweir {

class Context {
 public:
  // `behind`: the row for each class of the character before; the last is for the start of the text. `transitions` and
  // `symbols` are indexed by state, row and class; the last class is the end of the text.
  Context(std::vector<uint8_t> behind, std::vector<uint16_t> transitions, std::vector<uint8_t> symbols,
          size_t n_symbols)
      : behind_(std::move(behind)), transitions_(std::move(transitions)), symbols_(std::move(symbols)) {
    size_t rows = 0;
    for (const uint8_t row : behind_) rows = std::max<size_t>(rows, row + 1u);
    width_ = rows * behind_.size();
    if (width_ == 0 || transitions_.empty() || transitions_.size() % width_ != 0 ||
        symbols_.size() != transitions_.size())
      throw FileError("an automaton's context has the wrong size");
    for (const uint16_t state : transitions_)
      if (state >= transitions_.size() / width_) throw FileError("an automaton's context leads outside itself");
    for (const uint8_t symbol : symbols_)
      if (symbol >= n_symbols) throw FileError("an automaton's context has a symbol that is out of range");
  }

  size_t n_classes() const { return behind_.size() - 1; }

  // Returns the symbol of each character of [p, end), at the index of its first byte, and that of the end.
  template <class ClassOf>
  std::vector<uint8_t> read(const uint8_t* p, const uint8_t* end, ClassOf&& class_of) const {
    std::vector<uint8_t> symbols(static_cast<size_t>(end - p) + 1);
    const size_t n = n_classes();
    size_t state = 0, here = n;  // `here`: the class of the character at `at`
    for (const uint8_t* at = end;;) {
      const uint8_t* before = at;
      if (at > p) {
        do before--;
        while (utf8_continues(*before));
      }
      const size_t class_before = at > p ? class_of(before) : n;
      const size_t cell = state * width_ + behind_[class_before] * behind_.size() + here;
      symbols[static_cast<size_t>(at - p)] = symbols_[cell];
      if (at == p) return symbols;
      state = transitions_[cell];
      here = class_before;
      at = before;
    }
  }

 private:
  std::vector<uint8_t> behind_;
  std::vector<uint16_t> transitions_;
  std::vector<uint8_t> symbols_;
  size_t width_;
};

// An automaton over the symbols of a text, with the interface that `ScanMemo` needs.
struct SymbolAutomaton {
  const uint16_t* transitions;
  size_t width;
  const uint8_t *text, *end, *symbols;

  uint16_t at(uint32_t state, const uint8_t* p, uint32_t& length) const {
    length = utf8_length(*p);
    return transitions[state * width + symbols[p - text]];
  }

  const uint8_t* token_end(const uint8_t* p, const uint8_t* stop, bool& gap, const uint8_t*& reached) const {
    return walk(*this, p, stop, gap, reached, [](const uint8_t*, uint32_t) { return false; });
  }

  uint16_t at_end(uint32_t state) const { return transitions[state * width + symbols[end - text]]; }
};

}  // namespace tokenweir
