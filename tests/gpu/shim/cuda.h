// The part of CUDA that the kernels use, for g++; the rest does not compile. Its threads are fibers that take turns
// (fibers.h), or under TW_THREADS real threads, whose races ThreadSanitizer finds (threads.h). All shared memory lies in one
// section of the library, and since blocks run one after the other, each variable is there once. `extern __shared__` is not
// supported.
#pragma once

#include <cstring>
#include <tuple>
#include <type_traits>

#ifdef TW_THREADS
#include "threads.h"
#else
#include "fibers.h"
#endif

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static __attribute__((section("shim_shared")))

#define threadIdx shim::grid.thread
#define blockIdx shim::grid.block
#define blockDim shim::grid.block_size
#define gridDim shim::grid.grid_size

// -- time -------------------------------------------------------------------------------------------------------------

inline long long clock64() {
  static long long ticks = 0;
  return ticks += 1000;
}

// -- numbers ----------------------------------------------------------------------------------------------------------

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(unsigned x) { return __builtin_ffs(static_cast<int>(x)); }
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

// -- barriers ---------------------------------------------------------------------------------------------------------

#define __syncthreads() (void)shim::grid.meet_block(__LINE__, 0, [](uint64_t a, uint64_t) { return a; })
#define __syncthreads_or(x) \
  static_cast<int>(shim::grid.meet_block(__LINE__, (x) != 0, [](uint64_t a, uint64_t b) { return a | b; }))
#define __syncthreads_count(x) \
  static_cast<int>(shim::grid.meet_block(__LINE__, (x) != 0, [](uint64_t a, uint64_t b) { return a + b; }))
inline void __threadfence() { shim::grid.fence(); }

// -- warps ------------------------------------------------------------------------------------------------------------

constexpr unsigned kAllLanes = 0xFFFFFFFF;

namespace shim {

template <class T>
uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
T value_of(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

enum class Way { kUp, kDown, kXor, kFrom };

template <class T>
T shuffle(const char* name, int line, Way way, unsigned mask, T value, int by, int width = 32) {
  const int lane = static_cast<int>(grid.lane()), from = lane / width * width;
  int source = way == Way::kUp ? lane - by : way == Way::kDown ? lane + by : way == Way::kXor ? lane ^ by : from + by % width;
  if (source < from || source >= from + width) source = lane;
  if (!(mask >> source & 1)) grid.fail(line, std::string(name) + " from a lane that its mask lacks");
  return value_of<T>(grid.meet_warp(name, line, mask, bits_of(value))[static_cast<size_t>(source)]);
}

// `combine` over the values of the mask's lanes.
template <class T, class Combine>
T reduce(const char* name, int line, unsigned mask, T value, Combine&& combine) {
  const uint64_t* const values = grid.meet_warp(name, line, mask, bits_of(value));
  T all = value_of<T>(values[static_cast<size_t>(__builtin_ctz(mask))]);
  for (unsigned i = static_cast<unsigned>(__builtin_ctz(mask)) + 1; i < kWarp; i++)
    if (mask >> i & 1) all = combine(all, value_of<T>(values[i]));
  return all;
}

inline unsigned ballot(const char* name, int line, unsigned mask, bool vote) {
  const uint64_t* const values = grid.meet_warp(name, line, mask, vote);
  unsigned votes = 0;
  for (unsigned i = 0; i < kWarp; i++)
    if (mask >> i & 1 && values[i]) votes |= 1u << i;
  return votes;
}

template <class T>
unsigned match_any(const char* name, int line, unsigned mask, T value) {
  const uint64_t* const values = grid.meet_warp(name, line, mask, bits_of(value));
  unsigned equal = 0;
  for (unsigned i = 0; i < kWarp; i++)
    if (mask >> i & 1 && values[i] == bits_of(value)) equal |= 1u << i;
  return equal;
}

inline void sync_warp(int line, unsigned mask = kAllLanes) { grid.meet_warp("__syncwarp", line, mask, 0); }

}  // namespace shim

#define __syncwarp(...) shim::sync_warp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) shim::shuffle("__shfl_sync", __LINE__, shim::Way::kFrom, __VA_ARGS__)
#define __shfl_up_sync(...) shim::shuffle("__shfl_up_sync", __LINE__, shim::Way::kUp, __VA_ARGS__)
#define __shfl_down_sync(...) shim::shuffle("__shfl_down_sync", __LINE__, shim::Way::kDown, __VA_ARGS__)
#define __shfl_xor_sync(...) shim::shuffle("__shfl_xor_sync", __LINE__, shim::Way::kXor, __VA_ARGS__)
#define __ballot_sync(mask, vote) shim::ballot("__ballot_sync", __LINE__, mask, (vote) != 0)
#define __any_sync(mask, vote) static_cast<int>(shim::ballot("__any_sync", __LINE__, mask, (vote) != 0) != 0)
#define __all_sync(mask, vote) static_cast<int>(shim::ballot("__all_sync", __LINE__, mask, (vote) == 0) == 0)
#define __match_any_sync(mask, value) shim::match_any("__match_any_sync", __LINE__, mask, value)
#define __reduce_min_sync(mask, v) \
  shim::reduce("__reduce_min_sync", __LINE__, mask, v, [](auto a, auto b) { return b < a ? b : a; })
#define __reduce_max_sync(mask, v) \
  shim::reduce("__reduce_max_sync", __LINE__, mask, v, [](auto a, auto b) { return a < b ? b : a; })
#define __reduce_add_sync(mask, v) \
  shim::reduce("__reduce_add_sync", __LINE__, mask, v, [](auto a, auto b) { return a + b; })

// -- atomics ----------------------------------------------------------------------------------------------------------

// The type of the place decides, as it does in CUDA.
#define TW_ATOMIC(name, expression)                                    \
  template <class T>                                                   \
  T name(T* p, std::common_type_t<T> v) {                              \
    return shim::grid.change(p, [&](T old) { return static_cast<T>(expression); }); \
  }
TW_ATOMIC(atomicAdd, old + v)
TW_ATOMIC(atomicOr, old | v)
TW_ATOMIC(atomicAnd, old & v)
TW_ATOMIC(atomicMax, old < v ? v : old)
#undef TW_ATOMIC

// A load that goes past the caches: it sees what others have changed by atomic operations.
template <class T>
T __ldcv(const T* p) {
  return shim::grid.change(const_cast<T*>(p), [](T old) { return old; });
}

template <class T>
T atomicCAS(T* p, std::common_type_t<T> expected, std::common_type_t<T> v) {
  return shim::grid.change(p, [&](T old) { return old == expected ? v : old; });
}

// -- launching --------------------------------------------------------------------------------------------------------

namespace shim {

// Arguments arrive as in CUDA's own launch: a pointer to each, here with its size, which must be the parameter's.
template <class... P, size_t... I>
std::string launch(void (*kernel)(P...), unsigned n_blocks, unsigned n_threads, uint64_t seed, void* const* arguments,
                   const uint32_t* sizes, uint32_t n, std::index_sequence<I...>) {
  if (n != sizeof...(P))
    return std::to_string(n) + " arguments for " + std::to_string(sizeof...(P)) + " parameters";
  const uint32_t expected[] = {sizeof(P)..., 0};
  for (uint32_t i = 0; i < n; i++)
    if (sizes[i] != expected[i])
      return "argument " + std::to_string(i) + " has " + std::to_string(sizes[i]) + " bytes, not " +
             std::to_string(expected[i]);
  return grid.run(n_blocks, n_threads, seed, [&] { kernel(*static_cast<P*>(arguments[I])...); });
}

template <class... P>
std::string launch(void (*kernel)(P...), unsigned n_blocks, unsigned n_threads, uint64_t seed, void* const* arguments,
                   const uint32_t* sizes, uint32_t n) {
  return launch(kernel, n_blocks, n_threads, seed, arguments, sizes, n, std::index_sequence_for<P...>());
}

}  // namespace shim

#ifndef TW_THREADS
// The number of barriers that the blocks of all launches have met at.
extern "C" __attribute__((visibility("default"), used)) inline uint64_t shim_barriers() { return shim::grid.barriers; }
#endif

// The function by which Python launches `kernel`: an error's text, or an empty one, until the next launch.
#define TW_LAUNCHER(kernel)                                                                                      \
  extern "C" __attribute__((visibility("default"))) const char* launch_##kernel(                                 \
      unsigned n_blocks, unsigned n_threads, uint64_t seed, void* const* arguments, const uint32_t* sizes,       \
      uint32_t n) {                                                                                              \
    static std::string error;                                                                                    \
    error = shim::launch(kernel, n_blocks, n_threads, seed, arguments, sizes, n);                                \
    return error.c_str();                                                                                        \
  }
