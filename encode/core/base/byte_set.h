// A set of bytes with a vectorized skip over its members.
//
// Normalizers search for the first character that may change. Most single bytes answer that: an ASCII byte for itself,
// a lead byte for all characters that it begins, a continuation byte not at all. So text is skipped 16 bytes at a time
// by two table look-ups in registers (SSSE3), or byte by byte without SSSE3.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/utf8.h"

#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

namespace tokenweir {

class ByteSet {
 public:
  void add(uint8_t byte) { rows_[byte >> 7][byte & 15] |= static_cast<uint8_t>(1 << (byte >> 4 & 7)); }
  bool has(uint8_t byte) const { return rows_[byte >> 7][byte & 15] >> (byte >> 4 & 7) & 1; }

  // Returns the first byte of [p, end) that is not in the set, or `end`.
  const uint8_t* skip(const uint8_t* p, const uint8_t* end) const {
#ifdef __SSSE3__
    for (; end - p >= 16; p += 16) {
      const int others =
          _mm_movemask_epi8(members(Bits(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))) ^ 0xFFFF;
      if (others) return p + __builtin_ctz(static_cast<unsigned>(others));
    }
#endif
    while (p < end && has(*p)) p++;
    return p;
  }

#ifdef __SSSE3__
  // 16 bytes of text, as look-ups need them: for each byte its bit in a row, and the row's index in one of the two
  // tables. A shuffle yields 0 for an index with the high bit set.
  struct Bits {
    __m128i bit, ascii_row, other_row;

    explicit Bits(__m128i text) {
      const __m128i bits = _mm_setr_epi8(1, 2, 4, 8, 16, 32, 64, -128, 1, 2, 4, 8, 16, 32, 64, -128);
      const __m128i high = _mm_set1_epi8(-128), nibble = _mm_set1_epi8(15),
                    low = _mm_set1_epi8(-113);  // 0x80, 15, 0x8F
      bit = _mm_shuffle_epi8(bits, _mm_and_si128(_mm_srli_epi16(text, 4), nibble));
      ascii_row = _mm_and_si128(text, low);
      other_row = _mm_and_si128(_mm_xor_si128(text, high), low);
    }
  };

  // Returns 0xFF for each byte that is in the set, and 0 for the others.
  __m128i members(const Bits& text) const {
    const __m128i row =
        _mm_or_si128(_mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows_[0])), text.ascii_row),
                     _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows_[1])), text.other_row));
    return _mm_cmpeq_epi8(_mm_and_si128(row, text.bit), text.bit);
  }
#endif

 private:
  uint8_t rows_[2][16] = {};  // for ASCII and other bytes: bit h of row l is the byte 0xhl (or 0x80 + 0xhl)
};

// Returns the bytes that a skip from the start of a character may pass: continuation bytes, and bytes that begin only
// characters c with `passes(c)`. So a skip stops at the first byte of a character.
template <class Passes>
ByteSet bytes_of(Passes&& passes) {
  const auto all = [&](uint32_t first, uint32_t last) {
    for (uint32_t c = first; c <= last; c++)
      if (!passes(c)) return false;
    return true;
  };
  ByteSet set;
  for (uint32_t b = 0; b < 0x80; b++)
    if (passes(b)) set.add(static_cast<uint8_t>(b));
  for (uint32_t b = 0x80; b < 0xC0; b++) set.add(static_cast<uint8_t>(b));
  for (uint32_t b = 0xC2; b < 0xE0; b++)
    if (all((b & 0x1F) << 6, (b & 0x1F) << 6 | 0x3F)) set.add(static_cast<uint8_t>(b));
  for (uint32_t b = 0xE0; b < 0xF0; b++)
    if (all(b == 0xE0 ? 0x800 : (b & 0xF) << 12, (b & 0xF) << 12 | 0xFFF)) set.add(static_cast<uint8_t>(b));
  for (uint32_t b = 0xF0; b < 0xF5; b++)
    if (all(b == 0xF0 ? 0x10000 : (b & 7) << 18, b == 0xF4 ? 0x10FFFF : (b & 7) << 18 | 0x3FFFF))
      set.add(static_cast<uint8_t>(b));
  return set;
}

}  // namespace tokenweir
