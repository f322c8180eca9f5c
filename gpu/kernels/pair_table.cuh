// Pair of ids to the rank of its merge, and rank to the id that the pair becomes: what hash_table.h and bpe.h build, for
// kernels to read.
#pragma once

#include "hash.h"

namespace tokenweir {

struct PairLookUp {
  static constexpr uint32_t kControl = 0x80000000;  // in `results`: the id is a control token's

  const uint64_t* slots;  // 20 bits each id, 24 bits rank; all ones if empty
  const uint32_t* results;  // by rank
  uint32_t shift, last;   // a slot is found from the top bits of the hash; `last` is the number of the last one

  // The rank of a pair, or kNone; if `guarded`, also kNone if it becomes a control token.
  __device__ uint32_t find(uint32_t left, uint32_t right, bool guarded) const {
    const uint64_t key = pair_key(left, right);
    for (uint32_t i = static_cast<uint32_t>(mix(key) >> shift);; i = (i + 1) & last) {
      const uint64_t slot = slots[i];
      if (slot >> 24 == key) {
        const uint32_t rank = slot & 0xFFFFFF;
        return guarded && results[rank] & kControl ? kNone : rank;
      }
      if (slot == ~uint64_t{0}) return kNone;
    }
  }

  __device__ uint32_t merged(uint32_t rank) const { return results[rank] & ~kControl; }
};

}  // namespace tokenweir
