// The characters of a text that may be no UTF-8, as a thread finds them that begins anywhere.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

constexpr uint32_t kWithin = 0, kNotUtf8 = 0xFF;

// The length of the character `c` at a byte that is not ASCII; kWithin for a byte inside of one, and kNotUtf8.
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

}  // namespace tokenweir
