// Finds the starts of pieces in up to 64 bytes of text at once, by arithmetic on bit masks.
//
// Bit 0 is the start of a piece, so nothing before it matters. Adding the first bit of a run of ones carries to the end
// of the run. A place that depends on text beyond the lookahead is never reported as a start. The next step, which
// begins at the last known start, finds it.
#pragma once

#include <cstdint>

#include "pretokenizers/byte_masks.h"
#include "pretokenizers/families.h"

namespace tokenweir {

// The kind of character that each byte belongs to; bit i is byte i.
struct KindMasks {
  uint64_t letter;        // of any case
  uint64_t upper, lower;  // letters of one case only; not filled in where cases do not matter
  uint64_t digit;
  uint64_t space, blank, newline;
  uint64_t other;         // any other kind
  uint64_t continuation;  // bytes of a character except its first
  uint64_t apostrophe, slash;

  // Clears the bits of all other bytes.
  void keep(uint64_t bytes) {
    letter &= bytes;
    upper &= bytes;
    lower &= bytes;
    digit &= bytes;
    space &= bytes;
    blank &= bytes;
    newline &= bytes;
    other &= bytes;
    continuation &= bytes;
    apostrophe &= bytes;
    slash &= bytes;
  }
};

TW_INLINE uint64_t below(uint32_t bit) { return bit >= 64 ? ~uint64_t{0} : (uint64_t{1} << bit) - 1; }
TW_INLINE uint32_t lowest(uint64_t mask) { return static_cast<uint32_t>(__builtin_ctzll(mask)); }

// The runs of `mask` that begin at the bits `starts`.
TW_INLINE uint64_t runs_from(uint64_t mask, uint64_t starts) { return mask & ~(mask + starts); }

// Returns the length of the contraction that begins with the apostrophe at p[0], or 0. `n`: bytes of lookahead.
template <bool AnyCase>
TW_INLINE uint32_t contraction(const uint8_t* p, uint32_t n) {
  if (n < 2) return 0;
  const uint8_t fold = AnyCase ? 0x20 : 0, a = p[1] | fold;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (n < 3) return 0;
  const uint8_t b = p[2] | fold;
  return (a == 'l' && b == 'l') || ((a == 'v' || a == 'r') && b == 'e') ? 3 : 0;
}

// Returns the starts of pieces among the first `n` bytes at `p`, bit 0 included. Bits of `m` from `n` on are zero.
template <class Rules>
TW_INLINE uint64_t piece_starts(const uint8_t* p, KindMasks m, uint32_t n) {
  // Newlines that join the other characters before them.
  uint64_t taken = 0;
  if constexpr (Rules::kNewlines) {
    taken = runs_from(m.newline, m.newline & m.other << 1);
    if constexpr (Rules::kSlashes) {
      if (const uint64_t also = m.slash & taken << 1) {  // rare: end the lookahead there, and leave it to the automaton
        n = lowest(also);
        const uint64_t seen = below(n);
        m.keep(seen);
        taken &= seen;
      }
    }
  }
  const uint64_t last = uint64_t{1} << (n - 1);

  // White space: a run begins a piece, and so does its last character, unless that is a newline that ends a piece.
  const uint64_t white = m.space | m.blank | m.newline, free_white = white & ~taken;
  const uint64_t inner = Rules::kNewlines ? m.space | m.blank : white;
  uint64_t starts = (free_white & ~(free_white << 1)) | (inner & ~(white >> 1) & ~last);
  if constexpr (Rules::kNewlines) {
    const uint64_t newlines = m.newline & ~taken;
    for (uint64_t after = inner & newlines << 1; after; after &= after - 1) {  // after the last newline of a run
      const uint64_t end = (inner + (after & -after)) & ~inner;                // more than one bit if the carry is lost
      if (end & below(n) & ~m.newline) starts |= after & -after;
    }
  }

  // Other characters: a space joins them. A single one joins the letters after it.
  const uint64_t other_starts = m.other & ~(m.other << 1) & ~(m.space << 1);
  starts |= other_starts;
  uint64_t joined = 0;
  if constexpr (Rules::kAnyPrefix) {
    const uint64_t second = other_starts << 1;
    joined = (((m.continuation + (second & m.continuation)) & ~m.continuation) | (second & ~m.continuation)) & m.letter;
  }

  // Letters.
  const uint64_t prefix = Rules::kAnyPrefix ? m.space | m.blank : m.space;
  starts |= m.letter & ~(m.letter << 1) & ~(prefix << 1) & ~joined;
  if constexpr (Rules::kCases) starts |= m.upper & m.lower << 1;

  // Digits.
  uint64_t groups = m.digit & ~(m.digit << 1);
  if constexpr (Rules::kDigitsTakeSpace) groups &= ~(m.space << 1);
  if constexpr (Rules::kDigits == 1) groups = m.digit;
  starts |= groups;
  if constexpr (Rules::kDigits == 3) {
    const uint64_t third = m.digit & m.digit << 1 & m.digit << 2;
    while ((groups = groups << 3 & third)) starts |= groups;
  }

  // Contractions.
  if constexpr (Rules::kContractions == Contractions::kAnyCase || Rules::kContractions == Contractions::kLowerCase) {
    constexpr bool kAnyCase = Rules::kContractions == Contractions::kAnyCase;
    for (uint64_t at = other_starts & m.apostrophe & m.letter >> 1; at; at &= at - 1) {
      const uint32_t i = lowest(at), length = contraction<kAnyCase>(p + i, n - i);
      if (length == 0 && i + 2 < n) continue;
      starts &= ~(uint64_t{2} << i);  // clear the start bit of its letters, also if the lookahead is cut off
      if (length == 0) continue;
      if (i + length < n) starts |= uint64_t{1} << (i + length);
    }
  }
  if constexpr (Rules::kContractions == Contractions::kSuffix) {
    uint32_t done = 0;  // end of the last suffix: a suffix has no suffix itself
    for (uint64_t at = m.apostrophe & m.letter << 1; at; at &= at - 1) {
      const uint32_t i = lowest(at);
      if (i + 2 >= n) {  // the lookahead is cut off
        starts &= below(i);
        break;
      }
      const uint32_t length = contraction<true>(p + i, n - i);
      if (length == 0 || i == done) continue;
      done = i + length;
      starts &= ~(below(length) << i);
      if (done < n) starts |= uint64_t{1} << done;
    }
  }
  return starts | 1;
}

}  // namespace tokenweir
