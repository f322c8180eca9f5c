// Places inside a piece that no token crosses, so that what is left and right of them can be encoded apart.
//
// Models without a pre-tokenizer get whole documents, in which every word begins with U+2581. Two characters that stand
// side by side in no token are never merged. So a document may be cut before each U+2581 whose left neighbour no
// token has there, and the words, which repeat, are looked up. (Costs one pass over the vocabulary; the models say when
// it holds: no symbol of theirs may vanish, or take in a neighbour, across a cut.)
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "utf8.h"

namespace tokenweir {

class SafeCuts {
 public:
  // A token that text can become, or a part of one.
  void add_token(std::string_view token) {
    const auto* p = reinterpret_cast<const uint8_t*>(token.data());
    for (size_t at = 1; at + 3 <= token.size(); at++)
      if (is_mark(p + at)) joined_[word(p, at)] |= bit(p, at);
  }

  // The first cut in [p, end) after `p`, or `end`.
  const uint8_t* next(const uint8_t* p, const uint8_t* end) const {
    for (const uint8_t* q = p + 1; q < end; q++) {
      q = static_cast<const uint8_t*>(std::memchr(q, 0xE2, static_cast<size_t>(end - q)));
      if (!q) return end;
      const size_t at = static_cast<size_t>(q - p);
      if (is_mark(q) && !(joined_[word(p, at)] & bit(p, at))) return q;
    }
    return end;
  }

 private:
  static bool is_mark(const uint8_t* p) { return p[0] == 0xE2 && p[1] == 0x96 && p[2] == 0x81; }

  // The character before `at`; those outside the basic plane share their low 16 bits with another, which is safe.
  static uint32_t before(const uint8_t* p, size_t at) {
    do at--;
    while (at > 0 && utf8_continues(p[at]));
    uint32_t length;
    return utf8_decode(p + at, length) & 0xFFFF;
  }
  static size_t word(const uint8_t* p, size_t at) { return before(p, at) / 64; }
  static uint64_t bit(const uint8_t* p, size_t at) { return uint64_t{1} << before(p, at) % 64; }

  std::vector<uint64_t> joined_ = std::vector<uint64_t>(1024);  // characters that stand before U+2581 in some token
};

}  // namespace tokenweir
