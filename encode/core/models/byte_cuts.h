// Places inside a piece of byte-level BPE that no merge crosses, so that what is left and right of them merges apart.
//
// A run of Chinese is one piece, but few of its neighbouring characters stand side by side in any token. Where two
// characters do not, and no token has a part of the one beside the other or beside a part of it, a merge can never join
// them. The parts are short and repeat, so most are looked up. (Only what merging makes may be looked up: a part is not a
// piece, which a vocabulary may take whole though merging would not.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class ByteCuts {
 public:
  // For about `tokens` tokens.
  explicit ByteCuts(size_t tokens) : open_(kCharacters), pairs_(slot_bits(tokens) + 3) {}

  // A token that merging may make.
  void join(std::string_view token) {
    const auto *p = reinterpret_cast<const uint8_t*>(token.data()), *end = p + token.size();
    if (std::all_of(p, end, [](uint8_t byte) { return byte < 0x80; })) return;
    const uint8_t* at = p;
    while (at < end && utf8_continues(*at)) at++;
    uint32_t before = kPartly;  // the character that ends at `at`
    if (at == p) before = kNobody;
    if (at > p && at < end) ends_.push_back(token.substr(0, static_cast<size_t>(at - p)));
    while (at < end) {
      const uint32_t length = utf8_length(*at);
      const bool whole = at + length <= end;
      uint32_t ignored;
      const uint32_t c = whole ? utf8_decode(at, ignored) : kPartly;
      if (before != kNobody) {
        if (before < kPartly && whole) {
          pairs_.insert(hash(before, c));
        } else {
          if (before < kCharacters) open_[before] |= kAfter;
          if (whole && c < kCharacters) open_[c] |= kBefore;
          if (!whole) begins_.push_back(token.substr(static_cast<size_t>(at - p)));
        }
      }
      before = c;
      at += length;
    }
  }

  // To be called when all tokens have joined: marks the characters of which tokens have a part beside something else.
  void close() {
    const auto sort = [](std::vector<std::string_view>& parts) {
      std::sort(parts.begin(), parts.end());
      parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
    };
    sort(ends_);
    sort(begins_);
    for (uint32_t c = 0x80; c < kCharacters; c++) {
      char bytes[3];
      size_t n = 0;
      if (c < 0x800) {
        bytes[n++] = static_cast<char>(0xC0 | c >> 6);
      } else {
        bytes[n++] = static_cast<char>(0xE0 | c >> 12);
        bytes[n++] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
      }
      bytes[n++] = static_cast<char>(0x80 | (c & 0x3F));
      for (size_t k = 1; k < n; k++) {
        if (std::binary_search(ends_.begin(), ends_.end(), std::string_view(bytes + n - k, k))) open_[c] |= kAfter;
        if (std::binary_search(begins_.begin(), begins_.end(), std::string_view(bytes, k))) open_[c] |= kBefore;
      }
    }
    ends_ = {};
    begins_ = {};
  }

  // The first cut in [p, end) after `p`, or `end`. Text begins with a whole character.
  const uint8_t* next(const uint8_t* p, const uint8_t* end) const {
    uint32_t length;
    uint32_t before = utf8_decode(p, length);
    for (p += length; p < end; p += length) {
      const uint32_t c = utf8_decode(p, length);
      if (may_cut(before, c)) return p;
      before = c;
    }
    return end;
  }

 private:
  static constexpr uint32_t kCharacters = 0x10000;  // others are never cut beside
  static constexpr uint32_t kPartly = 0x200000, kNobody = 0x200001;
  static constexpr uint8_t kAfter = 1, kBefore = 2;  // something may join it after it, before it, by a part

  bool may_cut(uint32_t left, uint32_t right) const {
    if ((left | right) < 0x80 || (left | right) >= kCharacters) return false;
    return !(open_[left] & kAfter && open_[right] & kBefore) && !pairs_.may_have(hash(left, right));
  }

  static uint64_t hash(uint32_t left, uint32_t right) { return mix(uint64_t{left} << 21 | right); }

  std::vector<uint8_t> open_;
  Filter pairs_;
  std::vector<std::string_view> ends_, begins_;  // parts of characters at the ends of tokens; until `close`
};

}  // namespace tokenweir
