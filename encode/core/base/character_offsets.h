// Spans of bytes to spans of characters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/span.h"
#include "base/utf8.h"

namespace tokenweir {

inline size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !utf8_continues(static_cast<uint8_t>(c)); }));
}

// Converts `n` byte spans of `text` in place; a byte inside a character extends to the whole character.
inline void to_characters(std::string_view text, Span* spans, size_t n) {
  if (text.size() >= UINT32_MAX) throw Unsupported("offsets in a text of 4 GiB or more");
  std::vector<uint32_t> character(text.size() + 1);  // of the byte there
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  uint32_t next = 0;
  for (size_t i = 0; i < text.size(); i++) character[i] = utf8_continues(p[i]) ? next - 1 : next++;
  character[text.size()] = next;
  for (Span* span = spans; span < spans + n; span++) {
    const size_t end = span->end > span->start ? character[span->end - 1] + 1 : character[span->end];
    *span = {character[span->start], end};
  }
}

}  // namespace tokenweir
