// Decodes arbitrary bytes: each maximal subpart of an ill-formed sequence becomes one U+FFFD (Unicode's "maximal
// subpart", Python's errors="replace", Rust's from_utf8_lossy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tokenweir {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The kind and length of the first unit of some bytes: a character, a truncated character at the end, or an ill-formed
// subpart.
struct Utf8Start {
  enum Kind { kCharacter, kUnfinished, kBad } kind;
  size_t length;
};

// Classifies the first unit of `n` >= 1 bytes.
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

// Decodes `held` and appends it to `out`; a truncated character at its end stays in `held`.
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
