// Split points of models over characters: places that no token crosses. The text on both sides is encoded separately.
//
// If no token that merging makes has two characters side by side, no token crosses from one to the other, and the text
// may be cut between them.
//
// This requires that both characters are symbols of their own in any context. An unknown character may vanish, so that
// its neighbours become adjacent, or may fuse with the next one. The model says which characters are known, or that
// unknown ones cannot do this.
//
// Each pair of ASCII characters and U+2581 (the space) has a bit of its own. Other pairs share a Bloom filter: a split
// point may be missed, but never invented. Building takes one pass over the characters of all tokens.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/utf8.h"
#include "cuts/lone_characters.h"
#include "cuts/split_point_table.h"
#include "vocabulary/character_ids.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class SplitPoints {
 public:
  SplitPoints() = default;

  // Makes room for about `tokens` tokens. `all_known`: every character is a symbol of its own, also an unknown one.
  SplitPoints(size_t tokens, bool all_known)
      : known_(all_known ? 0 : kCharacters / 64, uint64_t{0}), others_(slot_bits(tokens) + 3) {
    for (auto& row : common_)
      for (uint64_t& bits : row) bits = all_known ? ~uint64_t{0} : 0;
  }

  // Declares a character known: it has an id. Must be called before `add_token`.
  void add_known(uint32_t character) {
    if (!known_.empty()) known_[character / 64] |= uint64_t{1} << character % 64;
    const uint32_t own = common(character);
    for (uint32_t other = 0; other < kCommon && own < kCommon; other++)
      if (is_known(other < 128 ? other : kSpace)) allow(own, other), allow(other, own);
  }

  // Sets the ids of a known character that no token joins to a neighbour.
  void set_lone(uint32_t character, const uint32_t* ids, size_t n) { lone_.set(character, ids, n); }

  // Records the pairs of characters inside a token. The token can occur in text, perhaps inside a longer one.
  void add_token(std::string_view token) {
    lone_.add_token(token);
    uint32_t before = kNone;
    for_each_character(token, [&](uint32_t character, size_t, size_t) {
      if (before != kNone) add_pair(before, character);
      before = character;
    });
  }

  // Whether a cut between two neighbours is safe, given their entries in `lone()`.
  bool may_cut(uint32_t left, uint64_t left_entry, uint32_t right, uint64_t right_entry) const {
    return LoneCharacters::never_joined(left_entry, right_entry) || view().may_cut(left, right);
  }

  // Returns the first cut in [p, end) after `p`, or `end`.
  const uint8_t* next(const uint8_t* p, const uint8_t* end) const {
    const SplitPointTable pairs = view();
    uint32_t length;
    uint32_t before = utf8_decode(p, length);
    for (p += length; p < end; p += length) {
      const uint32_t character = utf8_decode(p, length);
      if (pairs.may_cut(before, character)) return p;
      before = character;
    }
    return end;
  }

  SplitPointTable view() const {
    return {common_[0], known_.empty() ? nullptr : known_.data(), others_.words().data(), others_.shift()};
  }

  const LoneCharacters& lone() const { return lone_; }

  // Whether every character is a symbol of its own.
  bool all_known() const { return known_.empty(); }
  const SharedArray<uint64_t>& others() const { return others_.words(); }

  template <class Visit>
  void fields(Visit& visit) {
    visit(common_, known_, others_, lone_);
  }

 private:
  static constexpr uint32_t kCharacters = 0x110000;

  static constexpr uint32_t kSpace = SplitPointTable::kSpace, kCommon = SplitPointTable::kCommon;

  static uint32_t common(uint32_t c) { return SplitPointTable::common_index(c); }

  void add_pair(uint32_t left, uint32_t right) {
    const uint32_t l = common(left), r = common(right);
    if (l < kCommon && r < kCommon)
      common_[l][r / 64] &= ~(uint64_t{1} << r % 64);
    else
      others_.insert(SplitPointTable::hash(left, right));
  }

  // Allows a cut between two common characters, given by index.
  void allow(uint32_t left, uint32_t right) { common_[left][right / 64] |= uint64_t{1} << right % 64; }
  bool is_known(uint32_t c) const { return known_.empty() || (known_[c / 64] >> c % 64 & 1); }

  uint64_t common_[kCommon][3];  // a bit for each pair of common characters (ASCII and U+2581): a cut is safe
  SharedArray<uint64_t> known_;  // a bit by character; empty if all are known
  Filter others_;                // other pairs that occur in a token
  LoneCharacters lone_;
};

}  // namespace tokenweir
