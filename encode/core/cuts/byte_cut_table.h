// The look-up of `ByteCuts` (byte_cuts.h): whether a cut between two characters is safe. Freestanding.
#pragma once

#include "base/hash.h"

namespace tokenweir {

struct ByteCutTable {
  static constexpr uint32_t kCharacters = 0x10000;  // the basic plane; no cut beside any other character

  const uint16_t* left_class;   // by character: its class on the left of a place
  const uint16_t* right_class;  // and on the right
  const uint64_t* joined;       // a bit for each pair of classes
  uint64_t n_right_classes;
  const uint64_t* pairs;  // a Bloom filter of the pairs of whole characters inside tokens, with two bits in one word
  uint64_t pairs_shift;   // the top bits of a hash select the word

  TW_FN static uint64_t hash(uint32_t left, uint32_t right) { return mix(uint64_t{left} << 21 | right); }

  // The bits of a pair in its word.
  TW_FN static uint64_t bits(uint64_t hash, uint64_t shift) {
    return uint64_t{1} << (hash >> (shift - 6) & 63) | uint64_t{1} << (hash >> (shift - 12) & 63);
  }

  // Whether no token joins two adjacent characters.
  TW_FN bool may_cut(uint32_t left, uint32_t right) const {
    if ((left | right) < 0x80 || (left | right) >= kCharacters) return false;
    const uint64_t bit = left_class[left] * n_right_classes + right_class[right], pair = hash(left, right),
                   word = pairs[pair >> pairs_shift],
                   in_token = word >> (pair >> (pairs_shift - 6) & 63) & word >> (pair >> (pairs_shift - 12) & 63);
    return !((joined[bit / 64] >> bit % 64 | in_token) & 1);  // both look-ups at once, without a branch
  }
};

}  // namespace tokenweir
