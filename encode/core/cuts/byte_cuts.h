// Cuts of byte-level BPE: places inside a piece that no merge crosses. The bytes on both sides merge independently.
//
// A run of Chinese is one piece, but few of its adjacent characters occur side by side in any token. A merge across a
// place makes a token with bytes on both sides of it. So a place between two characters is a cut if no token has one
// beside the other, whole or in part. (The parts must be merged, or looked up among the results of merging. They are
// not pieces, so `ignore_merges` does not apply to them.)
//
// Pairs of whole characters share a Bloom filter: a cut may be missed, but never invented. Tokens that end or begin
// with a part of a character have few distinct parts. Characters that end with the same parts are a class, those that
// begin with the same parts another, and a table has a bit for each pair of classes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "cuts/byte_cut_table.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class ByteCuts {
 public:
  static constexpr uint32_t kCharacters = ByteCutTable::kCharacters;

  // Records the pairs of characters inside a token that merging may make. Its bytes must stay valid until `finish`.
  void add_token(std::string_view token) {
    for_each_pair(token, [&](const Side& left, const Side& right) {
      if (left.character != kNone && right.character != kNone)
        whole_pairs_.push_back(ByteCutTable::hash(left.character, right.character));
      else if (!left.bytes.empty())
        partial_pairs_.emplace_back(left, right);
    });
  }

  // Sets for each character the bits `follower % 8` of the characters that follow it in a token, both whole.
  static void add_followers(std::string_view token, uint8_t* bits) {
    for_each_pair(token, [&](const Side& left, const Side& right) {
      if (left.character < kCharacters && right.character < kCharacters)
        bits[left.character] |= static_cast<uint8_t>(1 << right.character % 8);
    });
  }

  // Builds the table, after the last `add_token`. Returns false if it would be too large; then no cut is known.
  bool finish() {
    SideClasses before, after;
    for (const auto& [left, right] : partial_pairs_) {
      before.add(left);
      after.add(right);
    }
    std::vector<uint16_t> left_class_of, right_class_of;
    const std::vector<std::vector<uint16_t>> lefts = before.make(left_class_of), rights = after.make(right_class_of);
    left_classes_ = std::move(left_class_of);
    right_classes_ = std::move(right_class_of);
    n_right_classes_ = after.count();
    if (before.count() * n_right_classes_ > kMostPairs) return false;
    joined_ = {before.count() * n_right_classes_ / 64 + 1, uint64_t{0}};
    size_t work = 0;
    for (const auto& [left, right] : partial_pairs_)
      for (const uint16_t l : lefts[before.number(left)])
        for (const uint16_t r : rights[after.number(right)]) {
          const size_t bit = l * n_right_classes_ + r;
          joined_[bit / 64] |= uint64_t{1} << bit % 64;
          if (++work > kMostPairs) return false;
        }
    partial_pairs_ = {};
    std::sort(whole_pairs_.begin(), whole_pairs_.end());
    const auto last = std::unique(whole_pairs_.begin(), whole_pairs_.end());
    const int bits = bits_of(static_cast<size_t>(last - whole_pairs_.begin()) * kBitsOfPair / 64);
    pairs_ = {size_t{1} << bits, uint64_t{0}};
    pairs_shift_ = 64 - static_cast<uint64_t>(bits);
    std::for_each(whole_pairs_.begin(), last,
                  [this](uint64_t hash) { pairs_[hash >> pairs_shift_] |= ByteCutTable::bits(hash, pairs_shift_); });
    whole_pairs_ = {};
    return true;
  }

  // Whether no token joins two adjacent characters.
  bool may_cut(uint32_t left, uint32_t right) const { return view().may_cut(left, right); }

  ByteCutTable view() const {
    return {left_classes_.data(), right_classes_.data(), joined_.data(), n_right_classes_, pairs_.data(), pairs_shift_};
  }
  const SharedArray<uint16_t>& left_classes() const { return left_classes_; }
  const SharedArray<uint16_t>& right_classes() const { return right_classes_; }
  const SharedArray<uint64_t>& joined() const { return joined_; }
  const SharedArray<uint64_t>& pairs() const { return pairs_; }

  template <class Visit>
  void fields(Visit& visit) {
    visit(pairs_, pairs_shift_, left_classes_, right_classes_, joined_, n_right_classes_);
  }

 private:
  // Bits of the filter for each pair: at most .4 % of the cuts are missed, and the filter stays in the cache.
  static constexpr size_t kBitsOfPair = 32;
  static constexpr size_t kMostPairs = size_t{1} << 24;  // of classes; real vocabularies need a hundredth

  // The bytes of a token on one side of a place: a character, or a part of one.
  struct Side {
    std::string_view bytes;
    uint32_t character;  // kNone: a part
    bool operator<(const Side& other) const { return bytes < other.bytes; }
  };

  // Calls `use(left, right)` for the sides of each place between two characters of a token.
  template <class Use>
  static void for_each_pair(std::string_view token, const Use& use) {
    const auto *p = reinterpret_cast<const uint8_t*>(token.data()), *end = p + token.size();
    if (std::all_of(p, end, [](uint8_t byte) { return byte < 0x80; })) return;
    const uint8_t* at = std::find_if_not(p, end, utf8_continues);
    Side before{{token.data(), static_cast<size_t>(at - p)}, kNone};
    while (at < end) {
      const size_t length = std::min<size_t>(utf8_length(*at), static_cast<size_t>(end - at));
      if (utf8_continues(*at) || !std::all_of(at + 1, at + length, utf8_continues))
        return;  // no text contains the token
      uint32_t bytes;
      const Side side{{reinterpret_cast<const char*>(at), length},
                      length == utf8_length(*at) ? utf8_decode(at, bytes) : kNone};
      use(before, side);
      before = side;
      at += length;
    }
  }

  // Groups characters into classes: those that match the same sides are one class.
  class SideClasses {
   public:
    void add(const Side& side) { numbers_.emplace(side, 0); }
    size_t number(const Side& side) const { return numbers_.at(side); }
    size_t count() const { return count_; }

    // Fills in the class of each character; returns for each side the classes that match it.
    std::vector<std::vector<uint16_t>> make(std::vector<uint16_t>& classes) {
      std::vector<uint64_t> can_be(kCharacters);  // 16 bits for each number of bytes of the character: number + 1
      size_t next = 0;
      for (auto& [side, number] : numbers_) {
        number = next++;
        if (next > kMostSides) continue;
        for_each_character(side, [&](uint32_t c, size_t bytes) { can_be[c] |= uint64_t{next} << 16 * (bytes - 1); });
      }
      std::vector<std::vector<uint16_t>> classes_of(next);
      if (next > kMostSides) {
        count_ = size_t{1} << 32;
        return classes_of;
      }
      std::unordered_map<uint64_t, uint16_t> known{{0, uint16_t{0}}};
      classes.assign(kCharacters, 0);
      for (uint32_t c = 0; c < kCharacters; c++) {
        const auto [found, is_new] = known.try_emplace(can_be[c], static_cast<uint16_t>(known.size()));
        classes[c] = found->second;
        for (uint64_t sides = is_new ? can_be[c] : 0; sides != 0; sides >>= 16)
          if (const uint16_t side = static_cast<uint16_t>(sides)) classes_of[side - 1u].push_back(found->second);
      }
      count_ = known.size();
      return classes_of;
    }

   private:
    static constexpr size_t kMostSides = 1 << 15;

    // Calls `use(character, bytes)` for each character of up to three bytes that the side equals, begins or ends.
    template <class Use>
    static void for_each_character(const Side& side, Use&& use) {
      const auto* p = reinterpret_cast<const uint8_t*>(side.bytes.data());
      const size_t n = side.bytes.size();
      if (side.character != kNone) {
        if (side.character < kCharacters && n <= 3) use(side.character, n);
        return;
      }
      if (n == 0 || n > 2) return;
      uint32_t bits = p[0] & 0x3F;
      if (n == 2) bits = (p[0] & 0x3Fu) << 6 | (p[1] & 0x3Fu);
      if (utf8_continues(p[0])) {  // an end
        for (uint32_t c = bits; c < kCharacters; c += 1u << 6 * n)
          if (c >= (n == 1 ? 0x80 : 0x800)) use(c, n);
      } else if (p[0] < 0xE0) {  // a beginning of two bytes
        const uint32_t from = (p[0] & 0x1Fu) << 6;
        for (uint32_t c = std::max(from, 0x80u); c < from + 64; c++) use(c, 1);
      } else if (p[0] < 0xF0) {
        const uint32_t from = (p[0] & 0x0Fu) << 12 | (n == 2 ? (p[1] & 0x3Fu) << 6 : 0);
        for (uint32_t c = std::max(from, 0x800u); c < from + (n == 2 ? 64 : 4096); c++) use(c, n);
      }
    }

    std::map<Side, size_t> numbers_;
    size_t count_ = 1;
  };

  SharedArray<uint64_t> pairs_;  // a Bloom filter of the pairs of whole characters
  uint64_t pairs_shift_ = 63;
  std::vector<uint64_t> whole_pairs_;  // the hashes of the pairs of whole characters; empty after `finish`
  std::vector<std::pair<Side, Side>>
      partial_pairs_;  // at least one side is a part of a character; empty after `finish`
  SharedArray<uint16_t> left_classes_,
      right_classes_;             // by character: its class on the left and on the right of a place
  SharedArray<uint64_t> joined_;  // a bit for each pair of classes
  size_t n_right_classes_ = 1;
};

}  // namespace tokenweir
