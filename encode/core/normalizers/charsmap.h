// SentencePiece's precompiled character map: rules that replace one string by another.
//
// The file format is `size of the trie in bytes (uint32), trie, replacements`, little-endian (sentencepiece 0.2.3,
// normalizer.cc; HuggingFace's spm_precompiled 0.1.4 reads the same). The trie is a Darts double array of 32-bit units:
// from a node with base b, byte c leads to unit b ^ c if that unit's label is c. The value of a key is the offset of
// its replacement, which ends at the next NUL.
//
// A map is validated completely when it is loaded, in linear time: every reachable base is inside the array, there is
// no cycle, and every replacement is UTF-8. So matching needs no checks, and no text makes it slow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "base/utf8_replace.h"

namespace tokenweir {

class Charsmap {
 public:
  struct Rule {
    size_t length = 0;  // of the replaced text, in bytes; 0 if no rule matches
    std::string_view replacement;
  };

  Charsmap() = default;  // without rules

  explicit Charsmap(std::string_view file) {
    uint32_t bytes = 0;
    if (file.size() >= sizeof bytes) std::memcpy(&bytes, file.data(), sizeof bytes);
    if (bytes == 0 || bytes % sizeof(uint32_t) != 0 || bytes > file.size() - sizeof bytes)
      throw FileError("precompiled_charsmap: a trie of " + std::to_string(bytes) + " bytes in " +
                      std::to_string(file.size()));
    if (bytes > kMaxBytes) throw Unsupported("precompiled_charsmap: a trie of " + std::to_string(bytes) + " bytes");
    units_.resize((bytes / sizeof(uint32_t) + 255) / 256 * 256, kUnused);
    std::memcpy(units_.data(), file.data() + sizeof bytes, bytes);
    replacements_ = file.substr(sizeof bytes + bytes);
    if (!is_utf8(replacements_)) throw FileError("precompiled_charsmap: the replacements are not UTF-8");
    check();
    for (uint32_t c = 1; c < 256; c++) {
      const uint32_t node = base(0) ^ c;
      starts_[c] = label(units_[node]) == c;
      starts_in_ascii_[c] = starts_[c] && has_value(units_[node]);
      for (uint32_t next = 1; starts_[c] && next < 0x80; next++) {
        const bool goes_on = label(units_[base(node) ^ next]) == next;
        starts_in_ascii_[c] |= goes_on;
        joins_ascii_ |= goes_on && c < 0x80 && c != '\r' && next != '\r';
      }
    }
  }

  // An upper bound for the factor by which a text grows.
  double growth() const { return static_cast<double>(std::max<size_t>(longest_replacement_, 1)); }

  // Whether a rule begins with this byte.
  bool starts(uint8_t byte) const { return starts_[byte]; }

  // Whether a rule that begins with this byte can match where only ASCII follows. (Most rules of ASCII letters need a
  // non-ASCII mark after them.)
  bool starts_in_ascii(uint8_t byte) const { return starts_in_ascii_[byte]; }

  // Whether a rule begins with two ASCII characters, neither of them a carriage return.
  bool joins_ascii() const { return joins_ascii_; }

  // Returns the rule that sentencepiece applies: the longest that matches at the start of `text`, among the 32
  // shortest.
  Rule longest(const uint8_t* text, size_t n) const {
    Rule found;
    size_t hits = 0, value = 0;
    match(text, n, [&](size_t length, size_t at) {
      found.length = length;
      value = at;
      return ++hits < kMaxHits;
    });
    if (hits) found.replacement = replacement(value);
    return found;
  }

  // Returns the rule that HuggingFace applies: the shortest that matches at the start of `text`.
  Rule shortest(const uint8_t* text, size_t n) const {
    Rule found;
    match(text, n, [&](size_t length, size_t at) {
      found = {length, replacement(at)};
      return false;
    });
    return found;
  }

  // Calls `use(c)` for each character that is not the first of a rule's key; for some more than once.
  template <class Use>
  void for_each_later_character(Use&& use) const {
    struct Visit {
      uint32_t node;
      uint32_t c, missing;  // of an incomplete character: its bits so far, and the number of missing bytes
      bool is_later;
    };
    std::vector<Visit> open{{0, 0, 0, false}};
    std::vector<bool> seen(units_.size());  // nodes after complete characters
    size_t steps = 0;
    while (!open.empty() && !units_.empty()) {
      const auto [node, bits, missing, is_later] = open.back();
      open.pop_back();
      if (missing > 0 && is_later && has_value(units_[node]))
        throw Unsupported("precompiled_charsmap: a rule that ends inside a character");
      if (++steps > kMaxBytes) throw Unsupported("precompiled_charsmap: rules whose characters are too many to tell");
      for (uint32_t byte = 1; byte < 256; byte++) {
        const uint32_t child = base(node) ^ byte;
        if (label(units_[child]) != byte) continue;
        const uint32_t left = missing > 0 ? missing - 1 : utf8_length(static_cast<uint8_t>(byte)) - 1;
        const uint32_t c = missing > 0 ? bits << 6 | (byte & 0x3F) : left == 0 ? byte : byte & (0x3F >> left);
        if (left > 0) {
          open.push_back({child, c, left, is_later});
          continue;
        }
        if (is_later) use(c);
        if (!seen[child]) open.push_back({child, 0, 0, true});
        seen[child] = true;
      }
    }
  }

 private:
  static constexpr size_t kMaxHits = 32;
  static constexpr uint32_t kMaxBytes = 1 << 24;      // the largest known has 0.3 MB
  static constexpr uint32_t kLongest = 1024;          // of a key, in bytes: the cost of a match at each place of a text
  static constexpr size_t kLongestReplacement = 128;  // the longest known has 33
  static constexpr uint32_t kUnused = 0x80000000, kNone = 0xFFFFFFFF;

  static bool has_value(uint32_t unit) { return unit >> 8 & 1; }
  static uint32_t label(uint32_t unit) { return unit & 0x800000FF; }  // that of a value unit equals no byte
  static uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }
  uint32_t base(uint32_t node) const { return node ^ (units_[node] >> 10) << ((units_[node] & 0x200) >> 6); }

  // Calls `hit(length, value)` for each key that is a prefix of `text`, the shortest first, until it returns false.
  template <class Hit>
  void match(const uint8_t* text, size_t n, Hit&& hit) const {
    if (n == 0 || !starts_[text[0]]) return;
    uint32_t at = base(0);
    for (size_t i = 0; i < n; i++) {
      const uint32_t node = at ^ text[i];
      if (label(units_[node]) != text[i]) return;
      at = base(node);
      if (has_value(units_[node]) && !hit(i + 1, value(units_[at]))) return;
    }
  }

  std::string_view replacement(size_t at) const {
    const std::string_view rest = std::string_view(replacements_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }

  // Validates the trie. Branches may share nodes (it is a DAWG), so each node is visited once.
  void check() {
    const uint32_t n = static_cast<uint32_t>(units_.size());
    std::vector<uint32_t> first(n, kNone), next(n, kNone);  // the units that a base leads to
    for (uint32_t i = n; i-- > 0;)
      if (const uint32_t c = label(units_[i]); c < 256) {
        next[i] = first[i ^ c];
        first[i ^ c] = i;
      }
    struct Visit {
      uint32_t node, child;
    };
    std::vector<uint32_t> height(n);  // of the trie below a node; kNone while the node is on the path
    std::vector<bool> done(n);
    std::vector<Visit> path;
    const auto enter = [&](uint32_t node) {
      const uint32_t at = base(node);
      if (at >= n) throw FileError("precompiled_charsmap: unit " + std::to_string(node) + " leads out of the trie");
      if (first[at] != kNone && label(units_[at]) == 0)
        throw FileError("precompiled_charsmap: a rule with a NUL character, at unit " + std::to_string(at));
      if (has_value(units_[node])) check_value(at);
      done[node] = true;
      height[node] = kNone;
      path.push_back({node, first[at]});
    };
    enter(0);
    while (!path.empty()) {
      const auto [node, child] = path.back();
      if (child != kNone) {
        path.back().child = next[child];
        if (!done[child]) {
          enter(child);
        } else if (height[child] == kNone) {
          throw FileError("precompiled_charsmap: the trie has a cycle at unit " + std::to_string(child));
        }
        continue;
      }
      uint32_t below = 0;
      for (uint32_t c = first[base(node)]; c != kNone; c = next[c]) below = std::max(below, height[c] + 1);
      if (below > kLongest)
        throw Unsupported("precompiled_charsmap: a rule of more than " + std::to_string(kLongest) + " bytes");
      height[node] = below;
      path.pop_back();
    }
  }

  void check_value(uint32_t at) {
    const size_t start = value(units_[at]);
    if (start > replacements_.size() ||
        (start < replacements_.size() && utf8_continues(static_cast<uint8_t>(replacements_[start]))))
      throw FileError("precompiled_charsmap: unit " + std::to_string(at) + " points at no replacement (" +
                      std::to_string(start) + ")");
    const std::string_view longest = std::string_view(replacements_).substr(start, kLongestReplacement + 1);
    const size_t length = std::min(longest.find('\0'), longest.size());
    if (length > kLongestReplacement)
      throw Unsupported("precompiled_charsmap: a replacement of more than " + std::to_string(kLongestReplacement) +
                        " bytes");
    longest_replacement_ = std::max(longest_replacement_, length);
  }

  std::vector<uint32_t> units_;  // padded to blocks of 256, because a base leads only to units of its own block
  std::string replacements_;
  size_t longest_replacement_ = 0;
  bool starts_[256] = {}, starts_in_ascii_[256] = {}, joins_ascii_ = false;
};

}  // namespace tokenweir
