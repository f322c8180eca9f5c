// The look-up of `SplitPoints` (split_points.h): whether a cut between two characters is safe. Freestanding.
#pragma once

#include "base/hash.h"

namespace tokenweir {

struct SplitPointTable {
  static constexpr uint32_t kSpace = 0x2581, kCommon = 129;

  const uint64_t* common;  // [kCommon][3]: a bit for each pair of common characters (ASCII and U+2581): a cut is safe
  const uint64_t* known;   // a bit by character; null if all are known
  const uint64_t* others;  // a Bloom filter of the other pairs that occur in a token
  uint64_t others_shift;

  // The index of a common character, ASCII or U+2581; kCommon for any other.
  TW_FN static uint32_t common_index(uint32_t c) { return c < 128 ? c : c == kSpace ? 128 : kCommon; }

  TW_FN static uint64_t hash(uint32_t left, uint32_t right) {
    const uint64_t h = mix(uint64_t{left} << 21 | right);
    return mix(h ^ h >> 32);
  }

  TW_FN bool is_known(uint32_t c) const { return !known || (known[c / 64] >> c % 64 & 1); }

  TW_FN bool may_cut(uint32_t left, uint32_t right) const {
    const uint32_t l = common_index(left), r = common_index(right);
    if (l < kCommon && r < kCommon) return common[l * 3 + r / 64] >> r % 64 & 1;
    const uint64_t bit = hash(left, right) >> others_shift;
    return !(others[bit >> 6] >> (bit & 63) & 1) && is_known(left) && is_known(right);
  }
};

}  // namespace tokenweir
