// Decoding of characters at any byte of a text that may be invalid UTF-8.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

// Decodes the character `c` at the beginning of `n` > 0 bytes; returns its length, or 0 if they are not UTF-8. Overlong
// forms, surrogates and code points past U+10FFFF are invalid.
__device__ inline uint32_t utf8_checked(const uint8_t* p, size_t n, uint32_t& c) {
  uint32_t length = utf8_length(p[0]);
  if (utf8_continues(p[0]) || length > n) return 0;
  for (uint32_t k = 1; k < length; k++)
    if (!utf8_continues(p[k])) return 0;
  c = utf8_decode(p, length);
  if (p[0] >= 0xF8 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return 0;
  return c < (length == 1 ? 0u : length == 2 ? 0x80u : length == 3 ? 0x800u : 0x10000u) ? 0 : length;
}

constexpr uint32_t kWithin = 0, kNotUtf8 = 0xFF;

// Decodes the character `c` at a byte that is not ASCII; returns its length, kWithin inside a character, or kNotUtf8.
__device__ inline uint32_t multibyte_at(const uint8_t* text, uint32_t n, uint32_t place, uint32_t& c) {
  if (utf8_continues(text[place])) {
    for (uint32_t back = 1; back <= 3 && back <= place; back++)
      if (!utf8_continues(text[place - back]))
        return text[place - back] >= 0xC0 && utf8_length(text[place - back]) > back ? kWithin : kNotUtf8;
    return kNotUtf8;
  }
  const uint32_t length = utf8_checked(text + place, n - place, c);
  return length == 0 ? kNotUtf8 : length;
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
