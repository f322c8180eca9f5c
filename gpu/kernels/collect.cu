// Compaction of the ids, which lie at the places where their tokens begin in the text, and the documents' offsets.
#include "common/characters.cuh"
#include "common/documents.cuh"
#include "common/tiles.cuh"
#include "gpu_tables/device_bpe.h"

namespace tokenweir::collect {

constexpr uint32_t kThreads = 256, kTile = kThreads * 32;  // one thread per word of `tokens`, one block per tile
constexpr uint32_t kLone = 0x8000;                         // flag on a place: the id is one of its character

// The bits of a word of `tokens` that belong to documents that are not refused.
__device__ inline uint32_t kept(const Documents& documents, uint32_t word, uint32_t bits) {
  const uint32_t end = word * 32 + 32;
  for (uint32_t place = word * 32, after; bits && place < end; place = after) {
    const uint32_t document = documents.at(place);
    after = documents.end(document);
    if (after <= place) break;  // past the last one
    if (documents.refusals[document] == 0) continue;
    for (uint32_t i = place; i < after && i < end; i++) bits &= ~(1u << i % 32);
  }
  return bits;
}

// The id of the token that begins at `place`, of a character of two or three bytes whose ids are in `lone`.
__device__ inline uint32_t lone_id(const uint8_t* text, const uint64_t* lone, uint32_t place) {
  const uint32_t from = place < 2 ? 0 : place - 2;
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(text) + from / 4;
  const uint64_t near = (uint64_t{words[1]} << 32 | words[0]) >> from % 4 * 8;
  uint32_t first = place - from;  // the place of the character in `near`
  while ((near >> 8 * first & 0xC0) == 0x80) first--;
  uint32_t c = 0;
  multibyte(static_cast<uint32_t>(near >> 8 * first), c);
  const LoneIds ids{lone[c]};
  const uint32_t after = place - from - first;
  return ids.id(ids.count() == 2 ? after > 0 : after);
}

}  // namespace tokenweir::collect

// Counts the ids. before[w]: the number of ids in word w's tile before those of word w. tiles[t]: the number of ids in
// all tiles before t. counters[kIds]: the number of all ids. Bits of refused documents are cleared. The block that
// finishes last adds up the counts of all blocks.
extern "C" __global__ void __launch_bounds__(256)
    count_ids(uint32_t n_words, const int64_t* offsets, uint32_t n_documents, uint32_t* tokens, uint32_t* before,
              uint32_t* tiles, uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::collect;
  __shared__ TileWords words;
  const Documents documents{offsets, n_documents, refusals, counters};
  const uint32_t word = blockIdx.x * kThreads + threadIdx.x;
  uint32_t bits = word < n_words ? tokens[word] : 0;
  if (counters[kRefusals] && bits) {
    bits = kept(documents, word, bits);
    tokens[word] = bits;
  }
  const Place place = block_scan(__popc(bits), words.warps);
  if (word < n_words) before[word] = place.before;
  uint32_t sum;
  if (add_up_tiles(place.total, tiles, &counters[kBlocksDone], words, sum) && threadIdx.x == 0) counters[kIds] = sum;
}

// share: the blocks of each tile, more in a small batch. out[i]: the ids in order. out_offsets[n_documents + 1]: the
// place in `out` where each document begins. The blocks after those of the tiles have one thread per document.
//
// A block lists the places of its tile's tokens in shared memory; then each thread copies every 256th id. So reads do not
// wait for one another, and neighbouring threads write neighbouring ids.
//
// lones: a bit map of the tokens whose ids are those of their characters in `tables`; or both are null.
//
// given: null; or `out`, `out_offsets`, `n_documents` and the room in `out`, which a recorded launch reads when it is
// replayed. If there is too little room, nothing is written.
extern "C" __global__ void __launch_bounds__(256)
    collect_ids(uint32_t n, uint32_t n_tiles, uint32_t share, const int64_t* offsets, uint32_t n_documents,
                const uint32_t* tokens, const uint32_t* before, const uint32_t* tiles, const uint32_t* ids,
                const uint8_t* text, const tokenweir::DeviceBpe* tables, const uint32_t* lones,
                const uint32_t* counters, int32_t* out, int64_t* out_offsets, const uint64_t* given) {
  using namespace tokenweir;
  using namespace tokenweir::collect;
  __shared__ uint16_t places[kTile];
  __shared__ uint32_t count;
  if (given) {
    if (counters[kIds] > given[3]) return;
    out = reinterpret_cast<int32_t*>(given[0]);
    out_offsets = reinterpret_cast<int64_t*>(given[1]);
    n_documents = static_cast<uint32_t>(given[2]);
  }
  if (blockIdx.x < n_tiles * share) {
    const uint32_t number = blockIdx.x / share, word = number * kThreads + threadIdx.x, n_words = (n + 31) / 32;
    const uint32_t begin = word < n_words ? before[word] : 0;
    const uint32_t of_lones = lones && word < n_words ? lones[word] : 0;
    uint32_t bits = word < n_words ? tokens[word] : 0, at = begin;
    for (; bits; bits &= bits - 1) {
      const uint32_t bit = static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1);
      places[at++] = static_cast<uint16_t>((of_lones >> bit & 1 ? kLone : 0) | (threadIdx.x * 32 + bit));
    }
    if (word == min(n_words, (number + 1) * kThreads) - 1) count = at;
    __syncthreads();
    const uint32_t tile = number * kTile, first = tiles[number];
    for (uint32_t i = blockIdx.x % share * kThreads + threadIdx.x; i < count; i += share * kThreads) {
      const uint32_t place = tile + (places[i] & (kTile - 1));
      out[first + i] = static_cast<int32_t>(places[i] & kLone ? lone_id(text, tables->lone, place) : ids[place]);
    }
    return;
  }
  const uint32_t document = (blockIdx.x - n_tiles * share) * kThreads + threadIdx.x;
  if (document > n_documents) return;
  const uint32_t place = static_cast<uint32_t>(offsets[document]), word = place / 32;
  uint32_t at = counters[kIds];
  if (place < n) at = tiles[word / kThreads] + before[word] + __popc(tokens[word] & ((1u << place % 32) - 1));
  out_offsets[document] = at;
}

// Puts ids that the host has found at the places of their tokens. One thread per id.
extern "C" __global__ void put_ids(const uint32_t* places, const uint32_t* found, uint32_t n, uint32_t* ids,
                                   uint32_t* tokens) {
  using namespace tokenweir;
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  ids[places[i]] = found[i];
  set_bit(tokens, places[i]);
}
