// Skips text that a normalization form leaves as it is, 16 bytes at a time.
//
// Most bytes answer alone: an ASCII byte for itself, a lead byte for all characters that it begins (base/byte_set.h).
// That leaves kana and the punctuation of Chinese and Japanese: their lead byte E3 also begins a few marks. Those share
// two second bytes, so three vectors, of the bytes and of the two after each, find them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/byte_set.h"

namespace tokenweir {

class InertText {
 public:
  // `is_inert(c)`: the character neither changes nor affects a neighbour.
  template <class IsInert>
  explicit InertText(IsInert&& is_inert) : plain_(bytes_of(is_inert)) {
    for (uint8_t second = 0x80; second < 0xC0; second++) {
      ByteSet thirds;
      bool any = false;
      for (uint8_t third = 0x80; third < 0xC0; third++)
        if (!is_inert(uint32_t{0x3000} | (second & 0x3Fu) << 6 | (third & 0x3Fu))) {
          thirds.add(third);
          any = true;
        }
      if (any && n_rows_++ < kRows) rows_[n_rows_ - 1] = {second, thirds};
    }
  }

  // Whether a skip may pass characters that begin with `lead`.
  bool may_skip(uint8_t lead) const { return plain_.has(lead) || (lead == kLead && skips_kana()); }

  // Returns the first character of [p, end) that may not be inert, or `end`. `p` is the start of a character.
  const uint8_t* skip(const uint8_t* p, const uint8_t* end) const {
    p = plain_.skip(p, end);
#ifdef __SSSE3__
    if (!skips_kana()) return p;
    const __m128i lead = _mm_set1_epi8(static_cast<char>(kLead));
    while (end - p >= 18 && *p == kLead) {
      // One step may begin and end inside a character: a byte that continues it is plain.
      const uint8_t* const from = p;
      do {
        const __m128i text = load(p), second = load(p + 1);
        const ByteSet::Bits third(load(p + 2));
        __m128i marks = _mm_setzero_si128();
        for (const Row& row : rows_)
          marks =
              _mm_or_si128(marks, _mm_and_si128(_mm_cmpeq_epi8(second, _mm_set1_epi8(static_cast<char>(row.second))),
                                                row.thirds.members(third)));
        const __m128i kana = _mm_andnot_si128(marks, _mm_cmpeq_epi8(text, lead));
        const __m128i inert = _mm_or_si128(kana, plain_.members(ByteSet::Bits(text)));
        const int others = _mm_movemask_epi8(inert) ^ 0xFFFF;
        if (others) {
          p += __builtin_ctz(static_cast<unsigned>(others));
          break;
        }
        p += 16;
      } while (end - p >= 18);
      if (p == from) return p;
      p = plain_.skip(p, end);
    }
#endif
    return p;
  }

 private:
  static constexpr uint8_t kLead = 0xE3;
  static constexpr size_t kRows = 2;

  // Characters that are not inert: those of a second byte, by the third.
  struct Row {
    uint8_t second = 0;
    ByteSet thirds;
  };

  bool skips_kana() const { return n_rows_ <= kRows; }

#ifdef __SSSE3__
  static __m128i load(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
#endif

  ByteSet plain_;
  Row rows_[kRows];
  size_t n_rows_ = 0;  // more than kRows: too many, as in the forms that decompose kana
};

}  // namespace tokenweir
