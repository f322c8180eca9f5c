// Quotes text from a file for error messages. Messages become Python strings, so they must be UTF-8: bytes that are not
// UTF-8 and control characters are escaped. Long text is truncated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8_replace.h"

namespace tokenweir {

inline std::string quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 80;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  std::string out = "\"";
  size_t at = 0;
  while (at < text.size() && at < kMaxBytes) {
    const Utf8Start start = utf8_start(p + at, text.size() - at);
    const bool control = p[at] < 0x20 || p[at] == 0x7F;
    if (!control && start.kind == Utf8Start::kCharacter) {
      out.append(text, at, start.length);
      at += start.length;
    } else {
      const char* digits = "0123456789ABCDEF";
      out.append({'\\', 'x', digits[p[at] >> 4], digits[p[at] & 15]});
      at++;
    }
  }
  out += '"';
  if (at < text.size()) out += "... (" + std::to_string(text.size()) + " bytes)";
  return out;
}

}  // namespace tokenweir
