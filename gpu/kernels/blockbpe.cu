// BlockBPE (You, 2025): byte-pair encoding of a whole string by one block, without a pattern.
//
// A pass merges all pairs of the lowest rank (block_merge.cuh). The ids are those of Algorithm 1, which does one merge
// in each step; tests/oracles/blockbpe_reference.py interprets that algorithm. The number of passes grows with the
// number of distinct words and subwords in the string, and the time of a pass with its length.
//
// The kernel `algorithm1` is a literal baseline: one merge in each pass, by steps 1 to 5 of the paper.
#include "common/block_merge.cuh"
#include "gpu_tables/device_bpe.h"
#include "common/documents.cuh"

namespace tokenweir::block {

constexpr uint32_t kWhole = 0x80000000;  // flag in the id of an added token, which takes part in no merge

struct Merges {
  const DeviceBpe& bpe;

  __device__ uint32_t priority(uint32_t left, uint32_t right) const {
    return (left | right) & kWhole ? kNone : bpe.priority(left, right);
  }
  __device__ uint32_t merged(uint32_t left, uint32_t right, uint32_t rank) const { return bpe.merged(left, right, rank); }
  __device__ bool is_tied(uint32_t rank) const { return bpe.is_tied(rank); }
};

// Algorithm 1 with the threads of sections 4.2 and 4.3: a pass looks up every pair again, finds the block's lowest
// rank, merges its leftmost occurrence, and closes the gap by a prefix sum. Like `merge`, but without ranks in
// `buffers`.
template <class Bpe>
__device__ uint32_t merge_leftmost(const Bpe& bpe, const Buffers& buffers, uint32_t n, uint32_t& which, Words& words) {
  which = 0;
  for (;;) {
    const uint32_t* const from = buffers.of(which, n).ids;
    uint32_t mine = kNone, leftmost = kNone;
    for (uint32_t i = threadIdx.x; i + 1 < n; i += blockDim.x) {
      const uint32_t rank = bpe.priority(from[i], from[i + 1]);
      if (rank < mine) mine = rank, leftmost = i;
    }
    const uint32_t lowest = block_min(mine, words.lowest);
    if (lowest == kNone) return n;
    const uint32_t at = block_min(mine == lowest ? leftmost : kNone, words.last);
    const Share share(n);
    uint32_t kept = 0;
    for (uint32_t i = share.begin; i < share.end; i++) kept += i != at + 1;
    const Place place = block_scan(kept, words.kept);
    which ^= 1;
    uint32_t* to = buffers.of(which, place.total).ids + place.before;
    for (uint32_t i = share.begin; i < share.end; i++)
      if (i != at + 1) *to++ = i == at ? bpe.merged(from[i], from[i + 1], lowest) : from[i];
    n = place.total;
    __syncthreads();
  }
}

// The arguments that both kernels share; see there.
struct Strings {
  const DeviceBpe* tables;
  const uint8_t* text;
  Documents documents;
  uint32_t max_bytes;
  const uint32_t *taken, *added;
  Tokens far[2];
  uint32_t *ids, *tokens;
};

// Encodes the block's document; `merge_all` is one of the two above.
template <class Merge>
__device__ void encode_document(const Strings& strings, uint32_t (*near)[kNear], Words& words, const Merge& merge_all) {
  const Documents& documents = strings.documents;
  const uint32_t document = blockIdx.x, begin = documents.begin(document), n_bytes = documents.end(document) - begin;
  if (documents.refusals[document]) return;
  if (n_bytes > strings.max_bytes) {
    if (threadIdx.x == 0) documents.refuse_document(document, kTooLong);
    return;
  }
  const DeviceBpe bpe = *strings.tables;
  const Buffers buffers{{{near[0], near[1]}, {near[2], near[3]}},
                        {{strings.far[0].ids + begin, strings.far[0].ranks + begin},
                         {strings.far[1].ids + begin, strings.far[1].ranks + begin}}};

  // The initial tokens: added tokens, and the bytes between them.
  const Share bytes(n_bytes);
  const auto is_kept = [&](uint32_t at) { return !has_bit(strings.taken, at) || has_bit(strings.added, at); };
  uint32_t kept = 0;
  for (uint32_t at = begin + bytes.begin; at < begin + bytes.end; at++) kept += is_kept(at);
  const Place place = block_scan(kept, words.kept);
  uint32_t* to = buffers.of(0, place.total).ids + place.before;
  for (uint32_t at = begin + bytes.begin; at < begin + bytes.end; at++)
    if (is_kept(at)) *to++ = has_bit(strings.taken, at) ? strings.ids[at] | kWhole : bpe.byte(strings.text[at]);
  __syncthreads();

  uint32_t which;
  const uint32_t n = merge_all(Merges{bpe}, buffers, place.total, which, words);
  const Tokens left = buffers.of(which, n);
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
    strings.ids[begin + i] = left.ids[i] & ~kWhole;
    set_bit(strings.tokens, begin + i);
  }
}

}  // namespace tokenweir::block

// Both kernels encode one document in each block.
//
// Documents of more than `max_bytes` bytes are refused. taken: bit map of the bytes of added tokens. added: bit map of
// their first bytes, at whose places `ids` has their ids. far*: scratch, a word for each byte of text. The ids of a
// document are written one after the other from the place of its first byte on, each with a bit in `tokens`.
extern "C" __global__ void __launch_bounds__(1024, 1)
    blockbpe(const tokenweir::DeviceBpe* tables, const uint8_t* text, const int64_t* offsets, uint32_t n_documents,
             uint32_t max_bytes, const uint32_t* taken, const uint32_t* added, uint32_t* far0_ids, uint32_t* far0_ranks,
             uint32_t* far1_ids, uint32_t* far1_ranks, uint32_t* ids, uint32_t* tokens, uint32_t* refusals,
             uint32_t* counters) {
  using namespace tokenweir::block;
  __shared__ uint32_t near[4][kNear];
  __shared__ Words words;
  encode_document({tables, text, {offsets, n_documents, refusals, counters}, max_bytes, taken, added,
                   {{far0_ids, far0_ranks}, {far1_ids, far1_ranks}}, ids, tokens}, near, words,
                  [](const Merges& bpe, const Buffers& buffers, uint32_t n, uint32_t& which, Words& own) {
                    return merge(bpe, buffers, n, which, own);
                  });
}

extern "C" __global__ void __launch_bounds__(1024, 1)
    algorithm1(const tokenweir::DeviceBpe* tables, const uint8_t* text, const int64_t* offsets, uint32_t n_documents,
               uint32_t max_bytes, const uint32_t* taken, const uint32_t* added, uint32_t* far0_ids, uint32_t* far0_ranks,
               uint32_t* far1_ids, uint32_t* far1_ranks, uint32_t* ids, uint32_t* tokens, uint32_t* refusals,
               uint32_t* counters) {
  using namespace tokenweir::block;
  __shared__ uint32_t near[4][kNear];
  __shared__ Words words;
  encode_document({tables, text, {offsets, n_documents, refusals, counters}, max_bytes, taken, added,
                   {{far0_ids, far0_ranks}, {far1_ids, far1_ranks}}, ids, tokens}, near, words,
                  [](const Merges& bpe, const Buffers& buffers, uint32_t n, uint32_t& which, Words& own) {
                    return merge_leftmost(bpe, buffers, n, which, own);
                  });
}
