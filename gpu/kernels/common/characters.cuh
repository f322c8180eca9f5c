// Decoding of characters at any byte of a text that may be invalid UTF-8.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

constexpr uint32_t kWithin = 0, kNotUtf8 = 0xFF;

// Decodes the character `c` that begins with a byte that is not ASCII, given four bytes, the first in the low bits; bytes
// outside the text are zero. Returns the character's length, or kNotUtf8.
__device__ inline uint32_t multibyte(uint32_t four, uint32_t& c) {
  const uint32_t first = four & 0xFF, second = four >> 8 & 0x3F, third = four >> 16 & 0x3F, fourth = four >> 24 & 0x3F;
  if (first < 0xE0) {
    c = (first & 0x1F) << 6 | second;
    return (four & 0xC000) == 0x8000 && c >= 0x80 && first >= 0xC0 ? 2 : kNotUtf8;
  }
  if (first < 0xF0) {
    c = (first & 0x0F) << 12 | second << 6 | third;
    return (four & 0xC0C000) == 0x808000 && c >= 0x800 && (c < 0xD800 || c >= 0xE000) ? 3 : kNotUtf8;
  }
  c = (first & 0x07) << 18 | second << 12 | third << 6 | fourth;
  return first < 0xF8 && (four & 0xC0C0C000) == 0x80808000 && c >= 0x10000 && c <= 0x10FFFF ? 4 : kNotUtf8;
}

// Decodes likewise at a byte that may be inside a character, given also the three bytes before, the first in the low
// bits; then returns kWithin.
__device__ inline uint32_t multibyte_in(uint64_t bytes, uint32_t& c) {
  const uint32_t four = static_cast<uint32_t>(bytes >> 24);
  if ((four & 0xC0) != 0x80) return multibyte(four, c);
  for (uint32_t back = 1; back <= 3; back++) {
    const uint8_t byte = static_cast<uint8_t>(bytes >> 8 * (3 - back));
    if (!utf8_continues(byte)) return byte >= 0xC0 && utf8_length(byte) > back ? kWithin : kNotUtf8;
  }
  return kNotUtf8;
}

// The bytes for `multibyte_in` at byte `k` of the word `here`, which lies between `before` and `after`.
__device__ inline uint64_t bytes_around(uint32_t before, uint32_t here, uint32_t after, uint32_t k) {
  const uint32_t shift = 8 * (k + 1);
  return (uint64_t{here} << 32 | before) >> shift | uint64_t{after} << (64 - shift);
}

// Decodes likewise at any place of a text, which is aligned, with zeros after it.
__device__ inline uint32_t multibyte_at(const uint8_t* text, uint32_t place, uint32_t& c) {
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(text) + place / 4;
  return multibyte_in(bytes_around(place < 4 ? 0 : words[-1], words[0], words[1], place % 4), c);
}

// A character's UTF-8, with the first byte in the low bits.
__device__ inline uint32_t utf8_of(uint32_t c) {
  if (c < 0x80) return c;
  const uint32_t last = 0x80 | (c & 0x3F), before = 0x80 | (c >> 6 & 0x3F), first = 0x80 | (c >> 12 & 0x3F);
  if (c < 0x800) return (0xC0 | c >> 6) | last << 8;
  if (c < 0x10000) return (0xE0 | c >> 12) | before << 8 | last << 16;
  return (0xF0 | c >> 18) | first << 8 | before << 16 | last << 24;
}

}  // namespace tokenweir
