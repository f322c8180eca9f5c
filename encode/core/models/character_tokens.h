// The look-up of characters that merging may begin with as a whole (premerged_chars.h). Freestanding.
#pragma once

#include "base/hash.h"

namespace tokenweir {

struct CharacterTokens {
  static constexpr uint32_t kCharacters = 0x10000;  // the basic plane
  static constexpr int kBefore = 0, kAfter = 1;

  const uint32_t* entries;  // [kCharacters]: the token with flags for its safe neighbours, or kNone

  TW_FN static bool is_ascii(uint8_t byte) { return byte < 0x80; }

  // The flag that the character is safe beside a neighbour of this kind.
  TW_FN static uint32_t flag(int side, bool ascii) { return 1u << (24 + 2 * side + ascii); }

  // Returns the token of the character at p[i] of a piece of n bytes, or kNone if it must begin as bytes.
  TW_FN uint32_t token(const uint8_t* p, size_t i, size_t n) const {
    if (p[i] < 0xC0 || p[i] >= 0xF0 || i + utf8_length(p[i]) > n) return kNone;
    uint32_t length;
    const uint32_t entry = entries[utf8_decode_multibyte(p + i, length)];
    if (entry == kNone) return kNone;
    if (i > 0 && !(entry & flag(kBefore, is_ascii(p[i - 1])))) return kNone;
    if (i + length < n && !(entry & flag(kAfter, is_ascii(p[i + length])))) return kNone;
    return entry & 0xFFFFFF;
  }
};

}  // namespace tokenweir
