// Encoding of pieces: a look-up finds those that are one token, and the others are queued for merging.
//
// The parts of a piece between its cuts are looked up one by one. No token has a cut inside, and a part is only what
// merging makes of it. A token's id is written to `ids` at the place of the token's first byte, with a bit in `tokens`. So
// no thread needs to know how many ids come before.
//
// Most parts of Chinese are one character. Their tokens have a bit in `lones` too, and no id: collect_ids looks it up. So
// a byte table that says where their tokens begin is all that is read here, and nothing is written but bits.
#include "common/block.cuh"
#include "common/documents.cuh"
#include "common/pieces.cuh"

namespace tokenweir::encode {

constexpr uint32_t kThreads = 256, kTile = kThreads * 32;  // at most
constexpr uint16_t kTaken = 0x8000, kCut = 0x4000;  // flags on a place: an added token begins there; no piece does
constexpr uint32_t kPlace = kTile - 1;
constexpr uint32_t kLeftBytes = 1 << 15;  // the most bytes of a part that is left to the host

// The eight bytes from `at` on, with zeros past `n`. They are read as two aligned words, which may include neighbouring
// bytes of the text or of the slack after it.
__device__ inline uint64_t bytes_at(const uint8_t* text, uint32_t at, uint32_t n) {
  const uint64_t* words = reinterpret_cast<const uint64_t*>(text) + at / 8;
  const uint32_t shift = at % 8 * 8;
  uint64_t bytes = words[0] >> shift;
  if (shift > 0 && at % 8 + n > 8) bytes |= words[1] << (64 - shift);
  return n < 8 ? bytes & ((uint64_t{1} << 8 * n) - 1) : bytes;
}

// A word of the bit map of the beginnings of pieces and their parts.
__device__ inline uint32_t begins_in(const uint32_t* pieces, const uint32_t* cuts, uint32_t word) {
  return cuts ? pieces[word] | cuts[word] : pieces[word];
}

// The end of the piece or part that begins at `place`, or any place more than `farthest` bytes away.
__device__ inline uint32_t part_end(const uint32_t* pieces, const uint32_t* cuts, uint32_t place, uint32_t n,
                                    uint32_t farthest) {
  uint32_t word = (place + 1) / 32;
  const uint32_t last = (n - 1) / 32;
  if (word > last) return n;
  uint32_t bits = begins_in(pieces, cuts, word) & 0xFFFFFFFF << (place + 1) % 32;
  while (bits == 0) {
    if (word++ == last) return n;
    if (word * 32 - place > farthest) return word * 32;
    bits = begins_in(pieces, cuts, word);
  }
  return word * 32 + static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
}

}  // namespace tokenweir::encode

// Encodes one tile, of `words` words of the bit maps, in each block. pieces, cuts: bit maps of the beginnings of pieces and
// of the cuts; `cuts` may be null. A part that is no token is queued for a thread if it has at most `merged_by_thread`
// bytes, which is kShortBytes, or 1 for no thread; and in `left`, for the host, if it has more than `max_bytes`. If `left`
// is null, or the part longer than any that a document has which is not refused, its document is refused.
extern "C" __global__ void __launch_bounds__(256, 6)
    encode_pieces(const tokenweir::DeviceBpe* tables, const uint8_t* text, uint32_t n, const int64_t* offsets,
                  uint32_t n_documents, const uint32_t* pieces, const uint32_t* cuts, const uint32_t* taken,
                  uint32_t words, uint32_t merged_by_thread, uint32_t max_bytes, uint32_t* ids, uint32_t* tokens,
                  uint32_t* lones, uint32_t* short_places, uint32_t capacity, uint32_t* other_places,
                  tokenweir::Piece* medium, tokenweir::Piece* long_pieces, tokenweir::Piece* left, uint32_t* refusals,
                  uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::encode;
  __shared__ uint16_t starts[kTile];
  __shared__ uint16_t missed[kTile / 2];  // tiny ones from the beginning, small ones from the end; two bytes or more
  __shared__ uint32_t found[kThreads], found_lones[kThreads + 1], warps[32], n_tiny, n_small, first_tiny, first_small,
      last_end;
  __shared__ bool last_is_cut;
  const uint32_t thread = threadIdx.x, tile = blockIdx.x * words * 32, word = tile / 32 + thread;
  const bool has_word = thread < words && word < (n + 31) / 32;
  const DeviceBpe bpe = *tables;
  const Documents documents{offsets, n_documents, refusals, counters};
  const uint32_t farthest = left ? max(max_bytes, kLeftBytes) : max_bytes;

  const uint32_t of_pieces = has_word ? pieces[word] : 0, skipped = has_word ? taken[word] : 0;
  const uint32_t begins = has_word ? begins_in(pieces, cuts, word) : 0;
  if (thread == 0) n_tiny = n_small = 0;
  found[thread] = found_lones[thread] = 0;
  if (thread == 0) found_lones[kThreads] = 0;  // the word after a tile's has bits of the last part
  const Place place = block_scan(__popc(begins), warps);
  uint32_t next = place.before;
  for (uint32_t bits = begins; bits; bits &= bits - 1) {
    const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
    const uint32_t flags = (skipped >> bit & 1 ? kTaken : 0) | (of_pieces >> bit & 1 ? 0 : kCut);
    starts[next++] = static_cast<uint16_t>((thread * 32 + bit) | flags);
  }
  if (next == place.total && begins) {
    const uint32_t end = part_end(pieces, cuts, tile + (starts[next - 1] & kPlace), n, farthest);
    last_end = end;
    last_is_cut = end < n && !has_bit(pieces, end);
  }
  __syncthreads();

  const uint32_t count = place.total;
  const auto begin_of = [&](uint32_t i) { return tile + (starts[i] & kPlace); };
  const auto end_of = [&](uint32_t i) { return i + 1 < count ? begin_of(i + 1) : last_end; };
  const auto put = [&](uint32_t at, uint32_t id) {
    ids[at] = id;
    atomicOr(&found[(at - tile) / 32], 1u << at % 32);
  };
  for (uint32_t i = thread; i < count; i += kThreads) {
    if (starts[i] & kTaken) continue;
    const uint32_t begin = begin_of(i), size = end_of(i) - begin;
    if (size == 1) {
      put(begin, bpe.byte(text[begin]));
      continue;
    }
    if (size > max_bytes) {
      if (size <= farthest)
        left[atomicAdd(&counters[kLeftPieces], 1u)] = {begin, size};
      else
        documents.refuse(begin, kTooLong);
      continue;
    }
    const bool is_part = starts[i] & kCut || (i + 1 < count ? starts[i + 1] & kCut : last_is_cut);
    if (const uint32_t bits = bpe.begins_of_lone(text + begin, size, is_part)) {
      const uint32_t at = begin - tile, over = at % 32 > 29 ? bits >> (32 - at % 32) : 0;
      atomicOr(&found_lones[at / 32], bits << at % 32);
      if (over) atomicOr(&found_lones[at / 32 + 1], over);
      continue;
    }
    const uint32_t id = bpe.pieces.find(bytes_at(text, begin, size), size > 8 ? bytes_at(text, begin + 8, size - 8) : 0,
                                        text + begin, size, is_part);
    if (id != kNone)
      put(begin, id);
    else if (size > merged_by_thread && size <= kMediumBytes)
      medium[atomicAdd(&counters[kMediumPieces], 1u)] = {begin, size};
    else if (size <= kTinyBytes)
      missed[atomicAdd(&n_tiny, 1u)] = static_cast<uint16_t>(i);
    else if (size <= kSmallBytes)
      missed[kTile / 2 - 1 - atomicAdd(&n_small, 1u)] = static_cast<uint16_t>(i);
    else if (size <= kShortBytes)
      ids[begin] = size, other_places[atomicAdd(&counters[kShortPieces], 1u)] = begin;
    else
      long_pieces[atomicAdd(&counters[kLongPieces], 1u)] = {begin, size};
  }
  __syncthreads();

  if (thread == 0) first_tiny = atomicAdd(&counters[kTinyPieces], n_tiny);
  if (thread == 32) first_small = atomicAdd(&counters[kSmallPieces], n_small);
  if (const uint32_t bits = found[thread] | found_lones[thread]) atomicOr(&tokens[word], bits);
  if (const uint32_t bits = found_lones[thread]) atomicOr(&lones[word], bits);
  if (const uint32_t bits = found_lones[kThreads]; bits && thread == 0) {
    atomicOr(&tokens[word + kThreads], bits);
    atomicOr(&lones[word + kThreads], bits);
  }
  __syncthreads();
  const auto queue = [&](uint32_t i, uint32_t at) {
    ids[begin_of(i)] = end_of(i) - begin_of(i);
    short_places[at] = begin_of(i);
  };
  for (uint32_t k = thread; k < n_tiny; k += kThreads) queue(missed[k], first_tiny + k);
  for (uint32_t k = thread; k < n_small; k += kThreads)
    queue(missed[kTile / 2 - 1 - k], capacity - 1 - first_small - k);
}
