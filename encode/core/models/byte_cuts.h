// Places inside a piece of byte-level BPE that no merge crosses, so that what is left and right of them merges apart.
//
// A run of Chinese is one piece, but few of its neighbouring characters stand side by side in any token. A merge across a
// place makes a token that has bytes on both sides of it. So a place between two characters is a cut if no token has the
// one beside the other, whole or in part. (What is cut off may then be merged, and looked up among what merging makes; it
// is no piece, which a vocabulary may take whole though merging would not.)
//
// Pairs of whole characters share a field of bits by their hash: now and then a cut is missed, never made. Parts of
// characters are few: characters that end with the same of them are a class, those that begin with the same another,
// and a table has a bit for each pair of classes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "models/byte_pairs.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

class ByteCuts {
 public:
  static constexpr uint32_t kCharacters = BytePairs::kCharacters;

  ByteCuts() = default;

  // For about `tokens` tokens.
  explicit ByteCuts(size_t tokens) : pairs_(slot_bits(tokens) + 3) {}

  // A token that merging may make; its bytes stay where they are until `close`.
  void join(std::string_view token) {
    const auto *p = reinterpret_cast<const uint8_t*>(token.data()), *end = p + token.size();
    if (std::all_of(p, end, [](uint8_t byte) { return byte < 0x80; })) return;
    const uint8_t* at = std::find_if_not(p, end, utf8_continues);
    Side before{{token.data(), static_cast<size_t>(at - p)}, kNone};
    while (at < end) {
      const size_t length = std::min<size_t>(utf8_length(*at), static_cast<size_t>(end - at));
      if (utf8_continues(*at) || !std::all_of(at + 1, at + length, utf8_continues)) return;  // no text contains the token
      uint32_t bytes;
      const Side side{{reinterpret_cast<const char*>(at), length},
                      length == utf8_length(*at) ? utf8_decode(at, bytes) : kNone};
      if (before.character != kNone && side.character != kNone)
        pairs_.insert(BytePairs::hash(before.character, side.character));
      else if (!before.bytes.empty())
        partly_.emplace_back(before, side);
      before = side;
      at += length;
    }
  }

  // To be called when all tokens have joined. Returns whether cuts can be told.
  bool close() {
    Classes before, after;
    for (const auto& [left, right] : partly_) {
      before.add(left);
      after.add(right);
    }
    std::vector<uint16_t> ends, begins;
    const std::vector<std::vector<uint16_t>> lefts = before.make(ends), rights = after.make(begins);
    ends_ = std::move(ends);
    begins_ = std::move(begins);
    width_ = after.count();
    if (before.count() * width_ > kMostPairs) return false;
    joined_ = {before.count() * width_ / 64 + 1, uint64_t{0}};
    size_t work = 0;
    for (const auto& [left, right] : partly_)
      for (const uint16_t l : lefts[before.number(left)])
        for (const uint16_t r : rights[after.number(right)]) {
          const size_t bit = l * width_ + r;
          joined_[bit / 64] |= uint64_t{1} << bit % 64;
          if (++work > kMostPairs) return false;
        }
    partly_ = {};
    return true;
  }

  // Whether nothing joins two characters that stand side by side.
  bool may_cut(uint32_t left, uint32_t right) const { return view().may_cut(left, right); }

  BytePairs view() const {
    return {ends_.data(), begins_.data(), joined_.data(), width_, pairs_.words().data(), pairs_.shift()};
  }
  const SharedArray<uint16_t>& ends() const { return ends_; }
  const SharedArray<uint16_t>& begins() const { return begins_; }
  const SharedArray<uint64_t>& joined() const { return joined_; }
  const SharedArray<uint64_t>& pairs() const { return pairs_.words(); }

  template <class Visit>
  void fields(Visit& visit) {
    visit(pairs_, ends_, begins_, joined_, width_);
  }

 private:
  static constexpr size_t kMostPairs = size_t{1} << 24;  // of classes; real vocabularies need a hundredth

  // What a token has on one side of a place: a character or a part of one.
  struct Side {
    std::string_view bytes;
    uint32_t character;  // kNone: a part
    bool operator<(const Side& other) const { return bytes < other.bytes; }
  };

  // Classes of characters by which sides they can be.
  class Classes {
   public:
    void add(const Side& side) { numbers_.emplace(side, 0); }
    size_t number(const Side& side) const { return numbers_.at(side); }
    size_t count() const { return count_; }

    // Fills in the class of each character; returns the classes that have each side.
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

    // Calls `use(character, bytes)` for the characters of up to three bytes that a side is, begins or ends.
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

  Filter pairs_;
  std::vector<std::pair<Side, Side>> partly_;  // sides of which one is a part at least; until `close`
  SharedArray<uint16_t> ends_, begins_;        // by character: its class left of a place, and right of it
  SharedArray<uint64_t> joined_;               // by two classes
  size_t width_ = 1;
};

}  // namespace tokenweir
