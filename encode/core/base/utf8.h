// UTF-8 characters. Freestanding (no standard includes beyond <stdint.h>): kernels include it too.
//
// All functions require valid UTF-8: the text of a Python str, or one that `is_utf8` accepts.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define TW_FN __host__ __device__ inline
#else
#define TW_FN inline
#endif

namespace tokenweir {

// The length in bytes of a character with this lead byte.
TW_FN uint32_t utf8_length(uint8_t lead) { return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4; }

// Whether valid UTF-8 can contain `byte`: all except C0, C1 and F5 to FF.
TW_FN bool utf8_contains(uint8_t byte) { return byte < 0xC0 || (byte >= 0xC2 && byte < 0xF5); }

TW_FN bool utf8_continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Decodes the character at `p`, which has at least two bytes, and sets `length`.
TW_FN uint32_t utf8_decode_multibyte(const uint8_t* p, uint32_t& length) {
  const uint32_t lead = p[0];
  if (lead < 0xE0) {
    length = 2;
    return (lead & 0x1F) << 6 | (p[1] & 0x3Fu);
  }
  if (lead < 0xF0) {
    length = 3;
    return (lead & 0x0F) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
  }
  length = 4;
  return (lead & 0x07) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
}

TW_FN uint32_t utf8_decode(const uint8_t* p, uint32_t& length) {
  if (p[0] < 0x80) {
    length = 1;
    return p[0];
  }
  return utf8_decode_multibyte(p, length);
}

// Writes the UTF-8 of a character and returns its length, at most 4.
TW_FN uint32_t utf8_encode(uint32_t c, uint8_t* out) {
  if (c < 0x80) {
    out[0] = static_cast<uint8_t>(c);
    return 1;
  }
  const uint32_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  out[0] = static_cast<uint8_t>(0xF00 >> length | c >> 6 * (length - 1));
  for (uint32_t i = 1; i < length; i++) out[i] = static_cast<uint8_t>(0x80 | (c >> 6 * (length - 1 - i) & 0x3F));
  return length;
}

// Unicode's White_Space property: 25 code points, unchanged since Unicode 6.3.
TW_FN bool is_white_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace tokenweir
