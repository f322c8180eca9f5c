// Text from a file as error messages quote it. The messages become Python strings, so they must be UTF-8 whatever bytes
// the file has: those that are none, and control characters, are escaped. What is long is cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8_replace.h"

namespace tokenweir {

inline std::string quoted(std::string_view text) {
  constexpr size_t kMost = 80;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  std::string out = "\"";
  size_t at = 0;
  while (at < text.size() && at < kMost) {
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
