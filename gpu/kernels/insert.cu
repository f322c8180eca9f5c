// Insertion of the host's ids into the device's: the post-processor's affixes, and documents that the CPU encoded.
//
// Document d becomes inserted[shifts[d] .. shifts[d + 1]), with the device's ids of d after the first `before` of
// these. So its place needs no sum over documents. A block writes kTile neighbouring ids of any documents; each thread
// finds the document of its id by binary search among those of the block.
#include <stdint.h>

namespace {

constexpr int64_t kTile = 2048;

struct Places {
  const int64_t *offsets, *shifts;

  __device__ int64_t start(int64_t document) const { return offsets[document] + shifts[document]; }

  // The document in [first, last] that holds `place`: the last one that begins at or before it.
  __device__ int64_t document(int64_t place, int64_t first, int64_t last) const {
    while (first < last) {
      const int64_t middle = (first + last + 1) / 2;
      if (start(middle) <= place)
        first = middle;
      else
        last = middle - 1;
    }
    return first;
  }
};

}  // namespace

// ids, offsets[n + 1]: those of the device. out, out_offsets[n + 1]: the result, whose offsets begin at `base`. One
// block per tile, and at least one.
extern "C" __global__ void insert_ids(const int32_t* ids, const int64_t* offsets, const int32_t* inserted,
                                      const int64_t* shifts, int64_t before, int64_t n, int64_t base, int32_t* out,
                                      int64_t* out_offsets) {
  const Places places{offsets, shifts};
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t d = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; d <= n; d += threads)
    out_offsets[d] = base + places.start(d);
  const int64_t total = places.start(n), tile = blockIdx.x * kTile;
  const int64_t tile_end = tile + kTile < total ? tile + kTile : total;
  if (tile >= tile_end) return;
  const int64_t first = places.document(tile, 0, n - 1), last = places.document(tile_end - 1, first, n - 1);
  for (int64_t i = tile + threadIdx.x; i < tile_end; i += blockDim.x) {
    const int64_t d = places.document(i, first, last);
    const int64_t from_host = shifts[d + 1] - shifts[d], from_device = offsets[d + 1] - offsets[d];
    const int64_t at = i - places.start(d), head = before < from_host ? before : from_host;
    if (at < head)
      out[i] = inserted[shifts[d] + at];
    else if (at < head + from_device)
      out[i] = ids[offsets[d] + at - head];
    else
      out[i] = inserted[shifts[d] + at - from_device];
  }
}
