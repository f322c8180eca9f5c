// Merging of short pieces by a thread each.
//
// The threads of a block take pieces of one class of lengths. The symbols of a thread are a column in shared memory:
// its bank is the thread's own, wherever in their pieces the threads of a warp merge.
#include "common/documents.cuh"
#include "common/pieces.cuh"
#include "models/merge_short.h"

namespace tokenweir::short_merging {

constexpr uint32_t kThreads = 256, kWords = 2 * kSmallBytes * kThreads;  // so that small ones take all threads

struct Column {
  uint32_t* first;
  uint32_t stride;

  __device__ uint32_t& operator[](uint32_t i) const { return first[i * stride]; }
};

// Merges the pieces whose places are `place_of(0 .. count)`, of up to `kSymbols` bytes.
template <uint32_t kSymbols, class PlaceOf>
__device__ void merge_class(const DeviceBpe& bpe, const uint8_t* text, uint32_t count, const PlaceOf& place_of,
                            uint32_t* shared, uint32_t* ids, uint32_t* tokens) {
  constexpr uint32_t kFit = kWords / (2 * kSymbols), kWorkers = kFit < kThreads ? kFit : kThreads;
  if (threadIdx.x >= kWorkers) return;
  const Column symbols{shared + threadIdx.x, kWorkers}, priorities{symbols.first + kSymbols * kWorkers, kWorkers};
  for (uint32_t k = blockIdx.x * kWorkers + threadIdx.x; k < count; k += gridDim.x * kWorkers) {
    const uint32_t begin = place_of(k), size = ids[begin];
    uint32_t left = begin_merging(bpe, text + begin, size, kSymbols, symbols, priorities);
    left = merge_short(bpe, symbols, priorities, left);
    for (uint32_t i = 0, at = begin; i < left; i++) {
      ids[at] = symbols[i];
      set_bit(tokens, at);
      at += bpe.lengths[symbols[i]];
    }
  }
}

}  // namespace tokenweir::short_merging

// short_places[capacity], other_places: the queues of encode_pieces, counted by the counters; the sizes of the pieces
// are in `ids`, at their places. ids, tokens: as in encode_pieces.
extern "C" __global__ void __launch_bounds__(256, 6)
    merge_short_pieces(const tokenweir::DeviceBpe* tables, const uint8_t* text, const uint32_t* short_places,
                       uint32_t capacity, const uint32_t* other_places, const uint32_t* counters, uint32_t* ids,
                       uint32_t* tokens) {
  using namespace tokenweir;
  using namespace tokenweir::short_merging;
  __shared__ uint32_t shared[kWords];
  const DeviceBpe bpe = *tables;
  const auto tiny = [&](uint32_t k) { return short_places[k]; };
  const auto small = [&](uint32_t k) { return short_places[capacity - 1 - k]; };
  const auto other = [&](uint32_t k) { return other_places[k]; };
  merge_class<kTinyBytes>(bpe, text, counters[kTinyPieces], tiny, shared, ids, tokens);
  merge_class<kSmallBytes>(bpe, text, counters[kSmallPieces], small, shared, ids, tokens);  // in the same columns
  __syncthreads();
  merge_class<kShortBytes>(bpe, text, counters[kShortPieces], other, shared, ids, tokens);
}
