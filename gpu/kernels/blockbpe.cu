// BlockBPE (You, 2025): byte-pair encoding of a whole string by one block, without a pattern.
//
// A pass merges all pairs of the lowest rank (block_merge.cuh). The ids are those of Algorithm 1, which merges one pair a step;
// tests/oracles/blockbpe_reference.py says how that algorithm is read. There are about as many passes as different words and parts of
// words in the string, and each takes time in its length.
#include "block_merge.cuh"
#include "device/device_bpe.h"
#include "documents.cuh"

namespace tokenweir::block {

constexpr uint32_t kWhole = 0x80000000;  // set in the id of an added token: it merges with nothing

struct Merges {
  const DeviceBpe& bpe;

  __device__ uint32_t priority(uint32_t left, uint32_t right) const {
    return (left | right) & kWhole ? kNone : bpe.priority(left, right);
  }
  __device__ uint32_t merged(uint32_t left, uint32_t right, uint32_t rank) const { return bpe.merged(left, right, rank); }
};

}  // namespace tokenweir::block

// Encodes each document by a block.
//
// Documents of more than `max_bytes` bytes are refused. taken: bits of the bytes of added tokens, and added: of their first ones,
// where `ids` has them. far*: scratch, a word for each byte of text. The ids of a document go one after the other to the
// places of its first bytes, each with a bit in `tokens`.
extern "C" __global__ void __launch_bounds__(1024, 1)
    blockbpe(const tokenweir::DeviceBpe* tables, const uint8_t* text, const int64_t* offsets, uint32_t n_documents,
             uint32_t max_bytes, const uint32_t* taken, const uint32_t* added, uint32_t* far0_ids, uint32_t* far0_ranks,
             uint32_t* far1_ids, uint32_t* far1_ranks, uint32_t* ids, uint32_t* tokens, uint32_t* refusals,
             uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::block;
  __shared__ uint32_t near[4][kNear];
  __shared__ Words words;
  const Documents documents{offsets, n_documents, refusals, counters};
  const uint32_t document = blockIdx.x, begin = documents.begin(document), n_bytes = documents.end(document) - begin;
  if (refusals[document]) return;
  if (n_bytes > max_bytes) {
    if (threadIdx.x == 0) documents.refuse_document(document, kTooLong);
    return;
  }
  const DeviceBpe bpe = *tables;
  const Buffers buffers{{{near[0], near[1]}, {near[2], near[3]}},
                        {{far0_ids + begin, far0_ranks + begin}, {far1_ids + begin, far1_ranks + begin}}};

  // The first tokens: added ones, and the bytes between them.
  const Share bytes(n_bytes);
  uint32_t kept = 0;
  for (uint32_t at = begin + bytes.begin; at < begin + bytes.end; at++) kept += !has_bit(taken, at) || has_bit(added, at);
  const Place place = block_scan(kept, words.kept);
  uint32_t* to = buffers.of(0, place.total).ids + place.before;
  for (uint32_t at = begin + bytes.begin; at < begin + bytes.end; at++) {
    if (!has_bit(taken, at))
      *to++ = bpe.byte(text[at]);
    else if (has_bit(added, at))
      *to++ = ids[at] | kWhole;
  }
  __syncthreads();

  uint32_t which;
  const uint32_t n = merge(Merges{bpe}, buffers, place.total, which, words);
  const Tokens left = buffers.of(which, n);
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
    ids[begin + i] = left.ids[i] & ~kWhole;
    set_bit(tokens, begin + i);
  }
}
