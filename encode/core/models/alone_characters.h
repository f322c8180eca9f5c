// Characters by themselves: which ids each becomes, and whether any token has it beside another character.
//
// Of Chinese, most characters stand in few tokens or in none but their own. Between two of which the one is last wherever
// it stands, or the other first, no token can be, and no table of pairs has to be asked. What is left between two such
// places is mostly one character, whose ids stand here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/shared_array.h"
#include "vocabulary/character_ids.h"

namespace tokenweir {

class AloneCharacters {
 public:
  static constexpr uint32_t kCharacters = 0x10000;  // the basic plane
  static constexpr size_t kMaxIds = 3;

  AloneCharacters() : entries_(kCharacters, uint64_t{0}) {}

  // What a character becomes wherever nothing joins it: 1 to kMaxIds ids.
  void set(uint32_t character, const uint32_t* ids, size_t n) {
    if (character >= kCharacters) return;
    uint64_t entry = uint64_t{n} << kIdBits * kMaxIds;
    for (size_t i = 0; i < n; i++) entry |= uint64_t{ids[i]} << kIdBits * i;
    entries_[character] |= entry;
  }

  // A token that text can become, or a part of one.
  void join(std::string_view token) {
    for_each_character(token, [&](uint32_t character, size_t at, size_t length) {
      if (character >= kCharacters) return;
      if (at > 0) entries_[character] |= kJoinsBefore;
      if (at + length < token.size()) entries_[character] |= kJoinsAfter;
    });
  }

  // The entry of a character; 0 if nothing is known.
  uint64_t find(uint32_t character) const { return character < kCharacters ? entries_[character] : 0; }

  // The number of ids; 0: it has to be encoded.
  static size_t count(uint64_t entry) { return entry >> kIdBits * kMaxIds & 3; }

  // Writes kMaxIds ids, of which as many hold as it returns.
  static size_t unpack(uint64_t entry, int32_t* out) {
    for (size_t i = 0; i < kMaxIds; i++) out[i] = static_cast<int32_t>(entry >> kIdBits * i & ((1u << kIdBits) - 1));
    return count(entry);
  }

  // Whether these entries alone tell that no token joins two characters that stand side by side.
  static bool stay_apart(uint64_t left, uint64_t right) {
    return !(left & kJoinsAfter && right & kJoinsBefore) && count(left) > 0 && count(right) > 0;
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(entries_);
  }

 private:
  static constexpr unsigned kIdBits = 20;  // as in the table of pairs
  static constexpr uint64_t kJoinsBefore = uint64_t{1} << 62, kJoinsAfter = uint64_t{1} << 63;

  SharedArray<uint64_t> entries_;  // the ids and their number, and on which sides a token joins it to others
};

}  // namespace tokenweir
