// Bytes to text, whatever the bytes are: what is not UTF-8 becomes U+FFFD, one for each longest beginning of a character
// (Unicode's "maximal subpart", Python's errors="replace", Rust's from_utf8_lossy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokenweir {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What bytes begin with: a character, the beginning of one at their end, or what can be neither.
struct Utf8Start {
  enum Kind { kCharacter, kUnfinished, kBad } kind;
  size_t length;
};

// `n` is at least 1.
inline Utf8Start utf8_start(const uint8_t* p, size_t n) {
  const uint8_t lead = p[0];
  if (lead < 0x80) return {Utf8Start::kCharacter, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Start::kBad, 1};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what is above U+10FFFF.
  uint8_t low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; i++) {
    if (i == n) return {Utf8Start::kUnfinished, n};
    if (p[i] < low || p[i] > high) return {Utf8Start::kBad, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Start::kCharacter, length};
}

// Appends the text of `held` to `out`; the beginning of a character at its end stays in `held`.
inline void decode_replace(std::string& held, std::string& out) {
  const auto* p = reinterpret_cast<const uint8_t*>(held.data());
  size_t at = 0;
  while (at < held.size()) {
    const Utf8Start start = utf8_start(p + at, held.size() - at);
    if (start.kind == Utf8Start::kUnfinished) break;
    if (start.kind == Utf8Start::kBad)
      out += kReplacement;
    else
      out.append(held, at, start.length);
    at += start.length;
  }
  held.erase(0, at);
}

inline bool is_utf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Start start = utf8_start(p + at, bytes.size() - at);
    if (start.kind != Utf8Start::kCharacter) return false;
    at += start.length;
  }
  return true;
}

}  // namespace tokenweir
