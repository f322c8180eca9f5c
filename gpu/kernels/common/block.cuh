// Collective operations of a block's threads: the minimum and the prefix sum of their values.
//
// Each takes one barrier: every warp writes its partial result to `warps`, 32 words of shared memory, and after the
// barrier every warp combines all partial results. The words may be reused after another barrier. All threads of the
// block must call, and the block must consist of full warps.
#pragma once

#include <stdint.h>

namespace tokenweir {

constexpr uint32_t kEveryLane = 0xFFFFFFFF;

__device__ inline uint32_t lane_of_thread() { return threadIdx.x & 31; }
__device__ inline uint32_t warp_of_thread() { return threadIdx.x >> 5; }

// The partial result of the warp with the calling lane's number, or `otherwise` if the block has no such warp.
__device__ inline uint32_t left_by_warps(const uint32_t* warps, uint32_t otherwise) {
  return lane_of_thread() < blockDim.x >> 5 ? warps[lane_of_thread()] : otherwise;
}

__device__ inline uint32_t block_min(uint32_t value, uint32_t* warps) {
  value = __reduce_min_sync(kEveryLane, value);
  if (lane_of_thread() == 0) warps[warp_of_thread()] = value;
  __syncthreads();
  return __reduce_min_sync(kEveryLane, left_by_warps(warps, 0xFFFFFFFF));
}

struct Place {
  uint32_t before;  // the sum of the values of all threads before
  uint32_t total;
};

__device__ inline Place block_scan(uint32_t value, uint32_t* warps) {
  const uint32_t lane = lane_of_thread();
  uint32_t sum = value;
  for (uint32_t distance = 1; distance < 32; distance *= 2) {
    const uint32_t other = __shfl_up_sync(kEveryLane, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) warps[warp_of_thread()] = sum;
  __syncthreads();
  const uint32_t of_warp = left_by_warps(warps, 0);
  const uint32_t earlier = __reduce_add_sync(kEveryLane, lane < warp_of_thread() ? of_warp : 0u);
  return {earlier + sum - value, __reduce_add_sync(kEveryLane, of_warp)};
}

}  // namespace tokenweir
