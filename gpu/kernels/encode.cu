// Encoding of pieces: a look-up finds those that are one token, and a thread each merges the other short ones.
//
// A token's id is written to `ids` at the place of the token's first byte, with a bit in `tokens`. So no thread needs
// to know how many ids come before.
#include "common/block.cuh"
#include "common/documents.cuh"
#include "models/merge_short.h"
#include "common/pieces.cuh"

namespace tokenweir::encode {

constexpr uint32_t kThreads = 256, kTile = kThreads * 32;
constexpr uint16_t kTaken = 0x8000;  // flag on a place: an added token begins there

// The eight bytes from `at` on, with zeros past `n`. They are read as two aligned words, which may include neighbouring
// bytes of the text or of the slack after it.
__device__ inline uint64_t bytes_at(const uint8_t* text, uint32_t at, uint32_t n) {
  const uint64_t* words = reinterpret_cast<const uint64_t*>(text) + at / 8;
  const uint32_t shift = at % 8 * 8;
  uint64_t bytes = words[0] >> shift;
  if (shift > 0 && at % 8 + n > 8) bytes |= words[1] << (64 - shift);
  return n < 8 ? bytes & ((uint64_t{1} << 8 * n) - 1) : bytes;
}

// The end of the piece that begins at `place`, or any place more than `max_bytes` bytes away.
__device__ inline uint32_t piece_end(const uint32_t* pieces, uint32_t place, uint32_t n, uint32_t max_bytes) {
  uint32_t word = (place + 1) / 32;
  const uint32_t last = (n - 1) / 32;
  if (word > last) return n;
  uint32_t bits = pieces[word] & 0xFFFFFFFF << (place + 1) % 32;
  while (bits == 0) {
    if (word++ == last) return n;
    if (word * 32 - place > max_bytes) return word * 32;
    bits = pieces[word];
  }
  return word * 32 + static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
}

}  // namespace tokenweir::encode

// Encodes one tile in each block. pieces: bit map of the beginnings of pieces. Pieces too long for one thread are
// queued in `medium` and `long_pieces`; documents with a piece of more than `max_bytes` bytes are refused.
extern "C" __global__ void __launch_bounds__(256, 4)
    encode_pieces(const tokenweir::DeviceBpe* tables, const uint8_t* text, uint32_t n, const int64_t* offsets,
                  uint32_t n_documents, const uint32_t* pieces, const uint32_t* taken, uint32_t max_bytes, uint32_t* ids,
                  uint32_t* tokens, tokenweir::Piece* medium, tokenweir::Piece* long_pieces, uint32_t* refusals,
                  uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::encode;
  __shared__ uint16_t starts[kTile], missed[kTile / 2];  // single bytes are tokens, so missed pieces have two or more bytes
  __shared__ uint32_t found[kThreads], warps[32], n_missed, last_end;
  const uint32_t thread = threadIdx.x, tile = blockIdx.x * kTile, word = tile / 32 + thread;
  const uint32_t n_words = (n + 31) / 32;
  const DeviceBpe bpe = *tables;
  const Documents documents{offsets, n_documents, refusals, counters};

  const uint32_t begins = word < n_words ? pieces[word] : 0, skipped = word < n_words ? taken[word] : 0;
  if (thread == 0) n_missed = 0;
  found[thread] = 0;
  const Place place = block_scan(__popc(begins), warps);
  uint32_t next = place.before;
  for (uint32_t bits = begins; bits; bits &= bits - 1) {
    const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
    starts[next++] = static_cast<uint16_t>(thread * 32 + bit) | (skipped >> bit & 1 ? kTaken : 0);
  }
  if (next == place.total && begins) last_end = piece_end(pieces, tile + (starts[next - 1] & ~kTaken), n, max_bytes);
  __syncthreads();

  const uint32_t count = place.total;
  const auto begin_of = [&](uint32_t i) { return tile + (starts[i] & ~uint32_t{kTaken}); };
  const auto end_of = [&](uint32_t i) { return i + 1 < count ? begin_of(i + 1) : last_end; };
  const auto put = [&](uint32_t at, uint32_t id) {
    ids[at] = id;
    if (at - tile < kTile)
      atomicOr(&found[(at - tile) >> 5], 1u << (at & 31));
    else
      set_bit(tokens, at);
  };
  for (uint32_t i = thread; i < count; i += kThreads) {
    if (starts[i] & kTaken) continue;
    const uint32_t begin = begin_of(i), size = end_of(i) - begin;
    if (size > max_bytes) {
      documents.refuse(begin, kTooLong);
      continue;
    }
    uint32_t id;
    if (size == 1)
      id = bpe.byte(text[begin]);
    else
      id = bpe.pieces.find(bytes_at(text, begin, size), size > 8 ? bytes_at(text, begin + 8, size - 8) : 0, text + begin, size);
    if (id != kNone)
      put(begin, id);
    else
      missed[atomicAdd(&n_missed, 1u)] = static_cast<uint16_t>(i);
  }
  __syncthreads();

  for (uint32_t k = thread; k < n_missed; k += kThreads) {
    const uint32_t begin = begin_of(missed[k]), size = end_of(missed[k]) - begin;
    uint32_t symbols[kShortSymbols], priorities[kShortSymbols];
    uint32_t left = begin_merging(bpe, text + begin, size, kShortSymbols, symbols, priorities);
    if (left > kShortSymbols) {
      const bool is_long = size > kMediumBytes;
      Piece* queue = is_long ? long_pieces : medium;
      queue[atomicAdd(&counters[is_long ? kLongPieces : kMediumPieces], 1u)] = {begin, size};
      continue;
    }
    left = merge_short(bpe, symbols, priorities, left);
    uint32_t at = begin;
    for (uint32_t i = 0; i < left; i++) {
      put(at, symbols[i]);
      at += bpe.lengths[symbols[i]];
    }
  }
  __syncthreads();
  if (found[thread]) atomicOr(&tokens[word], found[thread]);
}
