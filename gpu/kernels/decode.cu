// Decoding: the bytes of many texts' ids.
//
// Each id has a range of bytes in a table; a prefix sum over their sizes gives the place in the output. The first
// tokens of a text may stand for other bytes, which one thread per text handles.
#include "common/tiles.cuh"
#include "gpu_tables/device_content.h"

namespace tokenweir::decoding {

constexpr uint32_t kThreads = 256, kEach = 8, kTile = kThreads * kEach;  // the ids of a block have fewer than 1 << 31 bytes
static_assert(kTile <= (1u << 31) / Content::kMaxSize, "the bytes of a tile fit into 32 bits");

// Filled by gpu/decoder.py.
struct DecodeTables {
  const Content* contents;  // by id
  const Content* first;     // by id, for the first token of a text; null if it stands for the same bytes
  const uint8_t* bytes;
  uint64_t n_ids;
  uint64_t stripped, most_stripped;  // a character that is removed at the beginning of a text, and how often at most
};

enum Counter : uint32_t {
  kBadIds,  // n minus the place of the first id without a token; 0 if there is no such id
  kBlocksDone,
  kBytesLow,  // of all texts
  kBytesHigh,
  kCounters
};

}  // namespace tokenweir::decoding

// Looks up the bytes of each id within a text. One thread per id.
extern "C" __global__ void find_contents(const tokenweir::decoding::DecodeTables* tables, const int32_t* ids, uint32_t n,
                                         tokenweir::Content* contents, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::decoding;
  const uint32_t place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= n) return;
  const uint32_t id = static_cast<uint32_t>(ids[place]);  // negative ids become too large
  if (id < tables->n_ids) {
    contents[place] = tables->contents[id];
  } else {
    contents[place] = {0, Content::kSkipped};
    atomicMax(&counters[kBadIds], n - place);
  }
}

// Looks up the bytes of the first ids of each text. One thread per text.
extern "C" __global__ void begin_texts(const tokenweir::decoding::DecodeTables* tables, const int32_t* ids,
                                       const int64_t* offsets, uint32_t n_texts, tokenweir::Content* contents) {
  using namespace tokenweir;
  using namespace tokenweir::decoding;
  const uint32_t text = blockIdx.x * blockDim.x + threadIdx.x;
  if (text >= n_texts) return;
  const DecodeTables decoder = *tables;
  bool is_first = decoder.first != nullptr;
  uint64_t may_strip = decoder.most_stripped;
  for (int64_t at = offsets[text]; at < offsets[text + 1] && (is_first || may_strip > 0); at++) {
    Content content = contents[at];
    if (content.skipped()) continue;
    if (is_first) {
      content = decoder.first[ids[at]];
      is_first = content.stays_first();
      content.size_and_flags = content.size();
    }
    while (may_strip > 0 && content.size() > 0 && decoder.bytes[content.begin] == decoder.stripped) {
      content.begin++, content.size_and_flags--;
      may_strip--;
    }
    if (content.size() > 0) may_strip = 0;
    contents[at] = content;
  }
}

// Counts the bytes. before[i]: the bytes in id i's tile before those of id i. tiles[t]: the bytes of all tiles before
// t; the last entry is the total. The block that finishes last adds up the counts of all blocks.
extern "C" __global__ void __launch_bounds__(256)
    count_bytes(const tokenweir::Content* contents, uint32_t n, uint32_t* before, int64_t* tiles, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::decoding;
  __shared__ TileWords words;
  const auto size_of = [&](uint32_t i) { return i < n && !contents[i].skipped() ? contents[i].size() : 0; };
  const uint32_t begin = blockIdx.x * kTile + threadIdx.x * kEach;
  uint32_t size = 0;
  for (uint32_t i = begin; i < begin + kEach; i++) size += size_of(i);
  const Place place = block_scan(size, words.warps);
  uint32_t at = place.before;
  for (uint32_t i = begin; i < begin + kEach && i < n; i++) {
    before[i] = at;
    at += size_of(i);
  }
  int64_t sum;
  if (!add_up_tiles(place.total, tiles, &counters[kBlocksDone], words, sum) || threadIdx.x > 0) return;
  tiles[gridDim.x] = sum;
  counters[kBytesLow] = static_cast<uint32_t>(sum);
  counters[kBytesHigh] = static_cast<uint32_t>(sum >> 32);
}

// Writes the bytes, and the offset of each text. The blocks after the first `n_blocks` have one thread per text.
extern "C" __global__ void write_texts(const tokenweir::decoding::DecodeTables* tables, const tokenweir::Content* contents,
                                       uint32_t n, uint32_t n_blocks, const uint32_t* before, const int64_t* tiles,
                                       const int64_t* offsets, uint32_t n_texts, uint8_t* out, int64_t* out_offsets) {
  using namespace tokenweir;
  using namespace tokenweir::decoding;
  const auto place_of = [&](uint32_t i) { return i < n ? tiles[i / kTile] + before[i] : tiles[(n + kTile - 1) / kTile]; };
  if (blockIdx.x >= n_blocks) {
    const uint32_t text = (blockIdx.x - n_blocks) * blockDim.x + threadIdx.x;
    if (text <= n_texts) out_offsets[text] = place_of(static_cast<uint32_t>(offsets[text]));
    return;
  }
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || contents[i].skipped()) return;
  const Content content = contents[i];
  const uint8_t* const from = tables->bytes + content.begin;
  uint8_t* const to = out + place_of(i);
  for (uint32_t k = 0; k < content.size(); k++) to[k] = from[k];
}
