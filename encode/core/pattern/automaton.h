// The pre-tokenizer's automaton: compiled tables (encode/pattern) and the walk over them.
//
// A state's entry for a symbol has a flag, whether a match ends *before* that symbol, and the next state. The match of
// highest priority ends at the last flag before the dead state; the next token starts there. A symbol is the class of a
// character, or the end of the text. Freestanding: kernels include it too.
#pragma once

#include "base/utf8.h"

#if defined(__SSSE3__) && !defined(__CUDACC__)
#include <tmmintrin.h>
#define TW_RUNS 1
#endif

namespace tokenweir {

constexpr uint16_t kMatchEnds = 0x8000;  // a match ends before this symbol
constexpr uint16_t kGap = 0x4000;        // ... and it is a gap: text that the pattern does not match
constexpr uint16_t kDead = 0x3FFF;       // no match can continue
constexpr uint16_t kStateMask = 0x3FFF;

// The ASCII characters that lead a state back to itself by the same entry, as a membership test for 16 bytes at
// once: bit h of low[l] is set if the character 0xhl is a member. The letters of a word then take one step.
struct Run {
  uint8_t low[16];
  uint16_t entry;
};

// Tables of one automaton. The caller owns the arrays.
struct Automaton {
  static constexpr uint32_t kMaxRunStates = 64;
  static constexpr uint32_t kManySteps = 32;  // after this many steps, the run of any state is tested

  const uint16_t* ascii;        // [state][128]: entries by ASCII character, without a class look-up
  const uint16_t* transitions;  // [state][n_classes + 1]; the last column is the end of the text
  const uint16_t* class_index;  // [0x110000 >> 8]
  const uint8_t* class_pages;   // [page][256]
  uint32_t n_classes;
  const Run* runs;      // [state]; null if there are more than kMaxRunStates
  uint64_t run_states;  // bit s: state s has a run that is tested at every step

  TW_FN uint16_t at_end(uint32_t state) const { return transitions[state * (n_classes + 1) + n_classes]; }

  TW_FN uint16_t at(uint32_t state, const uint8_t* p, uint32_t& length) const {
    if (*p < 0x80) {
      length = 1;
      return ascii[state * 128 + *p];
    }
    const uint32_t c = utf8_decode_multibyte(p, length);
    return transitions[state * (n_classes + 1) + class_pages[class_index[c >> 8] * 256u + (c & 0xFF)]];
  }

  // Returns the end of the token that starts at `p` < `end`; sets `gap` if the pattern does not match it.
  // Every compiled automaton matches at least one character of any text.
  TW_FN const uint8_t* token_end(const uint8_t* p, const uint8_t* end, bool& gap) const {
    const uint8_t* reached;
    return token_end(p, end, gap, reached);
  }

  // Also sets `reached` to the end of the text that the walk has read.
  TW_FN const uint8_t* token_end(const uint8_t* p, const uint8_t* end, bool& gap, const uint8_t*& reached) const {
    const uint8_t* last = p;
    uint16_t flags = 0;
    uint32_t state = 0;
#ifdef TW_RUNS
    uint32_t steps = 0;
#endif
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
#ifdef TW_RUNS
      if (run_states >> (state % kMaxRunStates) & 1 || (++steps % kManySteps == 0 && runs)) {
        const uint8_t* const after = skip_run(runs[state], p, end);
        if (after != p && runs[state].entry & kMatchEnds) {
          last = after - 1;  // there is a flag before each character of the run, which are single bytes
          flags = runs[state].entry;
        }
        p = after;
      }
#endif
    }
    gap = flags & kGap;
    reached = p;
    return last;
  }

#ifdef TW_RUNS
  // Skips the run's characters at `p`; may stop early near the end.
  static const uint8_t* skip_run(const Run& run, const uint8_t* p, const uint8_t* end) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(run.low));
    const __m128i high = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i nibble = _mm_set1_epi8(15);
    while (end - p >= 16) {
      const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      const __m128i member = _mm_and_si128(_mm_shuffle_epi8(low, _mm_and_si128(text, nibble)),
                                           _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi16(text, 4), nibble)));
      const uint32_t others = _mm_movemask_epi8(_mm_cmpeq_epi8(member, _mm_setzero_si128()));
      if (others) return p + __builtin_ctz(others);
      p += 16;
    }
    return p;
  }
#endif
};

// The plain form of `Automaton::token_end`, one character at a time, for any `Table` with `at` and `at_end`. The walk
// stops early where `gives_up(place, state)` returns true. `Place` is a pointer, or another type that `at` takes.
template <class Table, class Place, class GivesUp>
TW_FN Place walk(const Table& table, Place p, Place end, bool& gap, Place& reached, const GivesUp& gives_up) {
  uint16_t flags = 0;
  Place last = p;
  for (uint32_t state = 0;;) {
    uint32_t length = 0;
    const uint16_t entry = p < end ? table.at(state, p, length) : table.at_end(state);
    if (entry & kMatchEnds) {
      last = p;
      flags = entry;
    }
    state = entry & kStateMask;
    if (state == kDead) break;
    p += length;
    if (gives_up(p, state)) break;
  }
  gap = flags & kGap;
  reached = p;
  return last;
}

}  // namespace tokenweir
