// A table by character: the ids of the character alone, and on which sides a token joins it to another character.
//
// Most Chinese characters occur in few tokens besides their own. If the left character ends every token that it occurs
// in, or the right one begins every token that it occurs in, no token spans the two. Two entries then prove a cut,
// without a look-up of the pair. The parts between cuts are mostly one character, whose ids are in its entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memory/shared_array.h"
#include "vocabulary/character_ids.h"

namespace tokenweir {

class LoneCharacters {
 public:
  static constexpr uint32_t kCharacters = 0x10000;  // the basic plane
  static constexpr size_t kMaxIds = 3;

  LoneCharacters() : entries_(kCharacters, uint64_t{0}) {}

  // Sets the ids of a character that no token joins to a neighbour: 1 to kMaxIds.
  void set(uint32_t character, const uint32_t* ids, size_t n) {
    if (character >= kCharacters) return;
    uint64_t entry = uint64_t{n} << kIdBits * kMaxIds;
    for (size_t i = 0; i < n; i++) entry |= uint64_t{ids[i]} << kIdBits * i;
    entries_[character] |= entry;
  }

  // Records which characters a token joins. The token can occur in text, perhaps inside a longer one.
  void add_token(std::string_view token) {
    for_each_character(token, [&](uint32_t character, size_t at, size_t length) {
      if (character >= kCharacters) return;
      if (at > 0) entries_[character] |= kJoinsBefore;
      if (at + length < token.size()) entries_[character] |= kJoinsAfter;
    });
  }

  // Returns the entry of a character; 0 for an unknown one.
  uint64_t find(uint32_t character) const { return character < kCharacters ? entries_[character] : 0; }

  // The number of ids in an entry; 0 if the character has to be encoded.
  static size_t count(uint64_t entry) { return entry >> kIdBits * kMaxIds & 3; }

  // Writes kMaxIds ids and returns how many of them are valid.
  static size_t unpack(uint64_t entry, int32_t* out) {
    for (size_t i = 0; i < kMaxIds; i++) out[i] = static_cast<int32_t>(entry >> kIdBits * i & ((1u << kIdBits) - 1));
    return count(entry);
  }

  // Whether the entries of two neighbours prove that no token joins them.
  static bool never_joined(uint64_t left, uint64_t right) {
    return !(left & kJoinsAfter && right & kJoinsBefore) && count(left) > 0 && count(right) > 0;
  }

  template <class Visit>
  void fields(Visit& visit) {
    visit(entries_);
  }

 private:
  static constexpr unsigned kIdBits = 20;  // as in the table of pairs
  static constexpr uint64_t kJoinsBefore = uint64_t{1} << 62, kJoinsAfter = uint64_t{1} << 63;

  SharedArray<uint64_t> entries_;  // by character: its ids, their number, and the two join flags
};

}  // namespace tokenweir
