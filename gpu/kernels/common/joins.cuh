// The places inside pieces that no merge crosses: whether a token joins two characters (cuts/byte_cuts.h).
//
// The tables are those of `ByteCuts`, arranged so that most places take one look-up for each character. What decides lies
// in the character's entry of `CutTables`: the number of its row among `joined` on the left of a place, of its column on
// the right, and by its remainder of 8 which characters follow it in a token. Only beside such a character the Bloom filter
// of all pairs is asked.
#pragma once

#include "cuts/byte_cut_table.h"

namespace tokenweir {

// Filled by gpu/modes/tables.py.
struct JoinTables {
  static constexpr uint32_t kRowShift = 8, kColumnShift = 16, kFollowersShift = 24;  // in an entry
  static constexpr uint32_t kMost = 256;                                             // rows, or columns

  const uint32_t* joined;  // [row][kMost / 32]: a bit for each column, set where no cut is safe whatever the characters
  const uint64_t* pairs;   // a Bloom filter of the pairs of whole characters inside tokens
  uint64_t pairs_shift;

  // Whether no token joins two adjacent characters, given their entries.
  __device__ bool may_cut(uint32_t left, uint32_t left_entry, uint32_t right, uint32_t right_entry) const {
    const uint32_t row = left_entry >> kRowShift & 0xFF, column = right_entry >> kColumnShift & 0xFF;
    if (joined[row * (kMost / 32) + column / 32] >> column % 32 & 1) return false;
    if (!(left_entry >> kFollowersShift >> right % 8 & 1)) return true;
    const uint64_t pair = ByteCutTable::hash(left, right), bits = ByteCutTable::bits(pair, pairs_shift);
    return (pairs[pair >> pairs_shift] & bits) != bits;
  }
};

}  // namespace tokenweir
