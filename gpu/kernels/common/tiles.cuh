// The sum of the counts of a kernel's blocks, one tile each, computed by the block that finishes last.
#pragma once

#include "common/block.cuh"

namespace tokenweir {

// Words in shared memory.
struct TileWords {
  uint32_t warps[32], is_last;
};

// Must be called by all threads with their block's total. In the last block it replaces each of `tiles` by the sum of
// those before it, sets the sum of all and returns true; in the others it returns false. Totals may have 31 bits, so
// that their sum takes two scans.
template <class Sum>
__device__ bool add_up_tiles(uint32_t total, Sum* tiles, uint32_t* blocks_done, TileWords& words, Sum& sum) {
  if (threadIdx.x == 0) {
    tiles[blockIdx.x] = total;
    __threadfence();
    words.is_last = atomicAdd(blocks_done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!words.is_last) return false;
  __threadfence();
  const volatile Sum* const counted = tiles;  // written by other blocks
  sum = 0;
  for (uint32_t first = 0; first < gridDim.x; first += blockDim.x) {
    const uint32_t tile = first + threadIdx.x;
    const uint32_t count = tile < gridDim.x ? static_cast<uint32_t>(counted[tile]) : 0;
    const Place low = block_scan(count & 0xFFFF, words.warps);
    __syncthreads();
    const Place high = block_scan(count >> 16, words.warps);
    if (tile < gridDim.x) tiles[tile] = sum + low.before + (Sum{high.before} << 16);
    sum += low.total + (Sum{high.total} << 16);
    __syncthreads();
  }
  return true;
}

}  // namespace tokenweir
