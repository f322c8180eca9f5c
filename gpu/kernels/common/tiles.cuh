// What the blocks of a kernel have counted, a tile each, added up by the one that is done last.
#pragma once

#include "common/block.cuh"

namespace tokenweir {

// In shared memory.
struct TileWords {
  uint32_t warps[32], is_last;
};

// All threads call with the total of their block. The last block makes each of `tiles` the sum of those before it, and
// has true and the sum of all; the others have false. A total may have 31 bits, so that their sum takes two scans.
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
  const volatile Sum* const counted = tiles;  // by other blocks
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
