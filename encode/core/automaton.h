// The pre-tokenizer's automaton: compiled tables (encode/pattern) and the walk over them.
//
// A state's entry for a symbol says whether a match ends *before* that symbol and where to go. The longest-priority
// match is the last flag seen before the automaton dies; the next token starts there. A symbol is the class of a
// character, or the end of the text. Freestanding: kernels include it too.
#pragma once

#include "utf8.h"

namespace tokenweir {

constexpr uint16_t kMatchEnds = 0x8000;  // a match ends before this symbol
constexpr uint16_t kGap = 0x4000;        // ... and it is text that the pattern does not match
constexpr uint16_t kDead = 0x3FFF;       // no match can continue
constexpr uint16_t kStateMask = 0x3FFF;

// Tables of one automaton; the arrays belong to somebody else.
struct Automaton {
  const uint16_t* ascii;        // [state][128]: entries by ASCII character, so that ASCII skips the class look-up
  const uint16_t* transitions;  // [state][n_classes + 1]; the last column is the end of the text
  const uint16_t* class_index;  // [0x110000 >> 8]
  const uint8_t* class_pages;   // [page][256]
  uint32_t n_classes;

  TW_FN uint16_t at_end(uint32_t state) const { return transitions[state * (n_classes + 1) + n_classes]; }

  TW_FN uint16_t at(uint32_t state, const uint8_t* p, uint32_t& length) const {
    if (*p < 0x80) {
      length = 1;
      return ascii[state * 128 + *p];
    }
    const uint32_t c = utf8_decode_multibyte(p, length);
    return transitions[state * (n_classes + 1) + class_pages[class_index[c >> 8] * 256u + (c & 0xFF)]];
  }

  // The end of the token that starts at `p` < `end`; `gap` tells whether the pattern leaves it unmatched.
  // Every compiled automaton matches at least one character of any text.
  TW_FN const uint8_t* token_end(const uint8_t* p, const uint8_t* end, bool& gap) const {
    const uint8_t* last = p;
    uint16_t flags = 0;
    uint32_t state = 0;
    for (;;) {
      uint32_t length = 0;
      const uint16_t entry = p < end ? at(state, p, length) : at_end(state);
      if (entry & kMatchEnds) {
        last = p;
        flags = entry;
      }
      state = entry & kStateMask;
      if (state == kDead) break;
      p += length;
    }
    gap = flags & kGap;
    return last;
  }
};

}  // namespace tokenweir
