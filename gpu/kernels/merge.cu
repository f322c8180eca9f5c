// Merging of pieces that are too long for one thread, by a warp or a block each.
#include "common/block_merge.cuh"
#include "common/documents.cuh"
#include "common/pieces.cuh"

namespace tokenweir::merging {

constexpr uint32_t kThreads = 256, kWarps = kThreads / 32;

// The symbols of a piece as a linked list, each at the place of its first byte. The places in between have no pair.
struct Symbols {
  uint32_t ids[kMediumBytes], priorities[kMediumBytes];
  uint16_t next[kMediumBytes], previous[kMediumBytes];
};

// Whether the continuation byte at `at` belongs to a character that starts as one symbol.
__device__ inline bool within_whole(const DeviceBpe& bpe, const uint8_t* p, uint32_t at, uint32_t n) {
  for (uint32_t back = 1; back <= 3 && back <= at; back++)
    if (!utf8_continues(p[at - back])) return utf8_length(p[at - back]) > back && bpe.whole(p, at - back, n) != kNone;
  return false;
}

// Merges one piece in each warp: a minimum over all places finds the next merge, and two lanes look up its two new
// pairs.
__device__ inline void merge_medium(const DeviceBpe& bpe, const uint8_t* text, const Piece* pieces, uint32_t n_pieces,
                                    uint32_t worker, uint32_t n_workers, Symbols& s, uint32_t* ids, uint32_t* tokens) {
  const uint32_t lane = lane_of_thread();
  for (uint32_t k = worker; k < n_pieces; k += n_workers) {
    const Piece piece = pieces[k];
    const uint8_t* const p = text + piece.begin;
    const auto pair = [&](uint32_t at) {
      return s.next[at] < piece.size ? bpe.priority(s.ids[at], s.ids[s.next[at]]) : kNone;
    };
    const uint32_t end = (piece.size + 31) / 32 * 32;  // of the places that the lanes look at
    for (uint32_t at = lane; at < end; at += 32) s.ids[at] = s.priorities[at] = kNone;
    for (uint32_t at = lane; at < piece.size; at += 32) {  // a character is begun whole by the lane of its first byte
      if (utf8_continues(p[at]) && within_whole(bpe, p, at, piece.size)) continue;
      const uint32_t whole = bpe.whole(p, at, piece.size);
      s.ids[at] = whole == kNone ? bpe.byte(p[at]) : whole;
      s.next[at] = static_cast<uint16_t>(at + (whole == kNone ? 1 : utf8_length(p[at])));
    }
    __syncwarp();
    for (uint32_t at = lane; at < piece.size; at += 32) {
      if (s.ids[at] == kNone) continue;
      if (s.next[at] < piece.size) s.previous[s.next[at]] = static_cast<uint16_t>(at);
      s.priorities[at] = pair(at);
    }
    __syncwarp();
    for (;;) {
      uint32_t lowest = kNone;  // a priority, of 24 bits, and then a place
      for (uint32_t at = lane; at < end; at += 32)
        if (s.priorities[at] != kNone) lowest = min(lowest, s.priorities[at] << 8 | at);
      lowest = __reduce_min_sync(kEveryLane, lowest);
      if (lowest == kNone) break;
      const uint32_t at = lowest & 0xFF, gone = s.next[at], after = s.next[gone];
      const uint32_t merged = bpe.merged(s.ids[at], s.ids[gone], lowest >> 8);
      const uint32_t before = at > 0 ? s.previous[at] : kNone;
      uint32_t priority = kNone;
      if (lane == 0 && before != kNone) priority = bpe.priority(s.ids[before], merged);
      if (lane == 1 && after < piece.size) priority = bpe.priority(merged, s.ids[after]);
      __syncwarp();
      if (lane == 0 && before != kNone) s.priorities[before] = priority;
      if (lane == 1) {
        s.ids[at] = merged;
        s.next[at] = static_cast<uint16_t>(after);
        s.priorities[at] = priority;
        s.ids[gone] = s.priorities[gone] = kNone;
        if (after < piece.size) s.previous[after] = static_cast<uint16_t>(at);
      }
      __syncwarp();
    }
    for (uint32_t at = lane; at < piece.size; at += 32) {  // and then the next piece: all at places of the lane's own
      if (s.ids[at] == kNone) continue;
      ids[piece.begin + at] = s.ids[at];
      set_bit(tokens, piece.begin + at);
    }
  }
}

// Merges one piece in each block, by block_merge.cuh.
__device__ inline void merge_long(const DeviceBpe& bpe, const uint8_t* text, const Piece* pieces, uint32_t n_pieces,
                                  uint32_t worker, uint32_t n_workers, const block::Buffers& buffers,
                                  block::Words& words, uint32_t* ids, uint32_t* tokens) {
  using namespace block;
  for (uint32_t k = worker; k < n_pieces; k += n_workers) {
    const Piece piece = pieces[k];
    const uint8_t* const p = text + piece.begin;
    const Share bytes(piece.size);
    const auto is_kept = [&](uint32_t i) { return !utf8_continues(p[i]) || !within_whole(bpe, p, i, piece.size); };
    uint32_t kept = 0;
    for (uint32_t i = bytes.begin; i < bytes.end; i++) kept += is_kept(i);
    const Place place = block_scan(kept, words.kept);
    uint32_t* first = buffers.of(0, place.total).ids + place.before;
    for (uint32_t i = bytes.begin; i < bytes.end; i++) {
      if (!is_kept(i)) continue;
      const uint32_t whole = bpe.whole(p, i, piece.size);
      *first++ = whole == kNone ? bpe.byte(p[i]) : whole;
    }
    __syncthreads();
    uint32_t which;
    const uint32_t n = merge(bpe, buffers, place.total, which, words);
    const uint32_t* const left = buffers.of(which, n).ids;
    const Share share(n);
    uint32_t size = 0;
    for (uint32_t i = share.begin; i < share.end; i++) size += bpe.lengths[left[i]];
    uint32_t at = piece.begin + block_scan(size, words.kept).before;
    for (uint32_t i = share.begin; i < share.end; i++) {
      ids[at] = left[i];
      set_bit(tokens, at);
      at += bpe.lengths[left[i]];
    }
    __syncthreads();
  }
}

}  // namespace tokenweir::merging

// medium, long_pieces: the queued pieces, counted by the counters, of up to kMediumBytes and `max_bytes` bytes. The
// first `n_long` blocks merge the long ones, each with 4 * `max_bytes` words of `far` if they exceed kNear. ids, tokens: as in
// encode_pieces.
extern "C" __global__ void __launch_bounds__(256, 4)
    merge_pieces(const tokenweir::DeviceBpe* tables, const uint8_t* text, const tokenweir::Piece* medium,
                 const tokenweir::Piece* long_pieces, uint32_t n_long, uint32_t max_bytes, uint32_t* far,
                 const uint32_t* counters, uint32_t* ids, uint32_t* tokens) {
  using namespace tokenweir;
  using namespace tokenweir::merging;
  __shared__ union {
    Symbols of_warps[kWarps];
    uint32_t near[4][block::kNear];
  } shared;
  __shared__ block::Words words;
  const uint32_t pieces = counters[blockIdx.x < n_long ? kLongPieces : kMediumPieces];
  if (pieces == 0) return;
  const DeviceBpe bpe = *tables;
  if (blockIdx.x >= n_long) {
    const uint32_t warp = warp_of_thread(), worker = (blockIdx.x - n_long) * kWarps + warp;
    return merge_medium(bpe, text, medium, pieces, worker, (gridDim.x - n_long) * kWarps, shared.of_warps[warp], ids,
                        tokens);
  }
  uint32_t* const own = far + uint64_t{blockIdx.x} * 4 * max_bytes;
  const block::Buffers buffers{
      {{shared.near[0], shared.near[1]}, {shared.near[2], shared.near[3]}},
      {{own, own + max_bytes}, {own + uint64_t{max_bytes} * 2, own + uint64_t{max_bytes} * 3}}};
  merge_long(bpe, text, long_pieces, pieces, blockIdx.x, n_long, buffers, words, ids, tokens);
}
