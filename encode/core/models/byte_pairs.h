// Which neighbouring characters nothing joins in byte-level BPE (byte_cuts.h), as it is looked up. Freestanding.
#pragma once

#include "base/hash.h"

namespace tokenweir {

struct BytePairs {
  static constexpr uint32_t kCharacters = 0x10000;  // others are never cut beside

  const uint16_t* ends;    // by character: its class left of a place
  const uint16_t* begins;  // and right of it
  const uint64_t* joined;  // by two classes
  uint64_t width;          // classes right of a place
  const uint64_t* pairs;   // a filter of the pairs of whole characters that stand in a token
  uint64_t pairs_shift;

  TW_FN static uint64_t hash(uint32_t left, uint32_t right) { return mix(uint64_t{left} << 21 | right); }

  // Whether nothing joins two characters that stand side by side.
  TW_FN bool may_cut(uint32_t left, uint32_t right) const {
    if ((left | right) < 0x80 || (left | right) >= kCharacters) return false;
    const uint64_t bit = ends[left] * width + begins[right], pair = hash(left, right) >> pairs_shift;
    return !((joined[bit / 64] >> bit % 64 | pairs[pair / 64] >> pair % 64) & 1);  // both at once, without a branch
  }
};

}  // namespace tokenweir
