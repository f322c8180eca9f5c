// Which neighbouring characters stand in no token together (split_points.h), as it is looked up. Freestanding.
#pragma once

#include "base/hash.h"

namespace tokenweir {

struct SplitPairs {
  static constexpr uint32_t kSpace = 0x2581, kNear = 129;

  const uint64_t* near;    // [kNear][3]: by two characters, ASCII or U+2581: whether a cut between them is safe
  const uint64_t* known;   // by character; null: all are
  const uint64_t* others;  // a filter of the pairs that stand in a token
  uint64_t others_shift;

  // The place of a character in the table of pairs; kNear if it has none.
  TW_FN static uint32_t near_place(uint32_t c) { return c < 128 ? c : c == kSpace ? 128 : kNear; }

  TW_FN static uint64_t hash(uint32_t left, uint32_t right) {
    const uint64_t h = mix(uint64_t{left} << 21 | right);
    return mix(h ^ h >> 32);
  }

  TW_FN bool is_known(uint32_t c) const { return !known || (known[c / 64] >> c % 64 & 1); }

  TW_FN bool may_cut(uint32_t left, uint32_t right) const {
    const uint32_t l = near_place(left), r = near_place(right);
    if (l < kNear && r < kNear) return near[l * 3 + r / 64] >> r % 64 & 1;
    const uint64_t bit = hash(left, right) >> others_shift;
    return !(others[bit >> 6] >> (bit & 63) & 1) && is_known(left) && is_known(right);
  }
};

}  // namespace tokenweir
