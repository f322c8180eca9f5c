// Split points: places inside a piece that no token crosses. The text before and after one can be encoded apart.
//
// Models without a pre-tokenizer get a whole document as one piece. If two characters stand side by side in no token
// that merging makes, then no token crosses from one to the other, and the document may be split between them. The
// parts are mostly words, which repeat, so their ids are looked up in the word cache.
//
// This holds where both characters are symbols of their own in any surroundings. An unknown character may vanish, so
// that its neighbours meet, or may become one token with the next character. The model says which characters are
// known, or that unknown ones cannot do this.
//
// Each pair of ASCII characters (and U+2581, the space) has a bit of its own. Other pairs share a field of bits by
// their hash: a split point may be missed, but none is invented. Filling takes one pass over the tokens' characters.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/alone_characters.h"
#include "models/split_pairs.h"
#include "vocabulary/character_ids.h"
#include "vocabulary/hash_table.h"
#include "base/utf8.h"

namespace tokenweir {

class SplitPoints {
 public:
  SplitPoints() = default;

  // For about `tokens` tokens. `anywhere`: every character is a symbol of its own, known or not.
  SplitPoints(size_t tokens, bool anywhere)
      : known_(anywhere ? 0 : kCharacters / 64, uint64_t{0}), others_(slot_bits(tokens) + 3) {
    for (auto& row : near_)
      for (uint64_t& bits : row) bits = anywhere ? ~uint64_t{0} : 0;
  }

  // Declares the characters known that have an id. To be called before `join`.
  void know(uint32_t character) {
    if (!known_.empty()) known_[character / 64] |= uint64_t{1} << character % 64;
    const uint32_t own = near(character);
    for (uint32_t other = 0; other < kNear && own < kNear; other++)
      if (is_known(other < 128 ? other : kSpace)) allow(own, other), allow(other, own);
  }

  // What a character becomes by itself; it is known.
  void set_alone(uint32_t character, const uint32_t* ids, size_t n) { alone_.set(character, ids, n); }

  // A token that text can become, or a part of one.
  void join(std::string_view token) {
    alone_.join(token);
    uint32_t before = kNone;
    for_each_character(token, [&](uint32_t character, size_t, size_t) {
      if (before != kNone) join(before, character);
      before = character;
    });
  }

  // Whether a cut is safe between two characters side by side, whose entries in `alone()` are those.
  bool may_cut(uint32_t left, uint64_t left_alone, uint32_t right, uint64_t right_alone) const {
    return AloneCharacters::stay_apart(left_alone, right_alone) || view().may_cut(left, right);
  }

  // The first cut in [p, end) after `p`, or `end`.
  const uint8_t* next(const uint8_t* p, const uint8_t* end) const {
    const SplitPairs pairs = view();
    uint32_t length;
    uint32_t before = utf8_decode(p, length);
    for (p += length; p < end; p += length) {
      const uint32_t character = utf8_decode(p, length);
      if (pairs.may_cut(before, character)) return p;
      before = character;
    }
    return end;
  }

  SplitPairs view() const { return {near_[0], known_.empty() ? nullptr : known_.data(), others_.words().data(), others_.shift()}; }

  const AloneCharacters& alone() const { return alone_; }

  // Whether every character is a symbol of its own.
  bool anywhere() const { return known_.empty(); }
  const SharedArray<uint64_t>& others() const { return others_.words(); }

  template <class Visit>
  void fields(Visit& visit) {
    visit(near_, known_, others_, alone_);
  }

 private:
  static constexpr uint32_t kCharacters = 0x110000;

  static constexpr uint32_t kSpace = SplitPairs::kSpace, kNear = SplitPairs::kNear;

  static uint32_t near(uint32_t c) { return SplitPairs::near_place(c); }

  void join(uint32_t left, uint32_t right) {
    const uint32_t l = near(left), r = near(right);
    if (l < kNear && r < kNear)
      near_[l][r / 64] &= ~(uint64_t{1} << r % 64);
    else
      others_.insert(SplitPairs::hash(left, right));
  }

  // Both by their place in the table.
  void allow(uint32_t left, uint32_t right) { near_[left][right / 64] |= uint64_t{1} << right % 64; }
  bool is_known(uint32_t c) const { return known_.empty() || (known_[c / 64] >> c % 64 & 1); }

  uint64_t near_[kNear][3];      // by two characters, ASCII or U+2581: whether a cut between them is safe
  SharedArray<uint64_t> known_;  // by character; empty: all are
  Filter others_;                // pairs that stand in a token
  AloneCharacters alone_;
};

}  // namespace tokenweir
