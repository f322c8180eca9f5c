// Ids to the bytes that they stand for, many texts at once.
//
// What each id stands for is a place in a table of bytes. The sizes, added up, say where it goes. The first tokens of a
// text may stand for something else, which one thread a text looks after; they are few.
#include "common/tiles.cuh"
#include "gpu_tables/device_content.h"

namespace tokenweir::decoding {

constexpr uint32_t kThreads = 256, kEach = 8, kTile = kThreads * kEach;  // ids a block; their bytes are below 1 << 31
static_assert(kTile <= (1u << 31) / Content::kMaxSize, "the bytes of a tile fit into 32 bits");

// gpu/decoder.py fills it.
struct DecodeTables {
  const Content* contents;  // by id
  const Content* first;     // of the first token of a text; null where that makes no difference
  const uint8_t* bytes;
  uint64_t n_ids;
  uint64_t stripped, most_stripped;  // a character that goes from the beginning of a text, up to so many times
};

enum Counter : uint32_t {
  kBadIds,  // counted from the last id, where the first one stands that has no token; 0 if all have
  kBlocksDone,
  kBytesLow,  // of all texts
  kBytesHigh,
  kCounters
};

}  // namespace tokenweir::decoding

// What each id stands for in mid-text. A thread an id.
extern "C" __global__ void find_contents(const tokenweir::decoding::DecodeTables* tables, const int32_t* ids, uint32_t n,
                                         tokenweir::Content* contents, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::decoding;
  const uint32_t place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place >= n) return;
  const uint32_t id = static_cast<uint32_t>(ids[place]);  // one below 0 is too large, then
  if (id < tables->n_ids) {
    contents[place] = tables->contents[id];
  } else {
    contents[place] = {0, Content::kSkipped};
    atomicMax(&counters[kBadIds], n - place);
  }
}

// What is different at the beginning of each text. A thread a text.
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

// before[i]: the bytes of its tile before those of id i. tiles[t]: the bytes of all tiles before t, and after the last those
// of all. The block that is done last adds up what all have counted.
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

// The bytes, and where each text begins among them. Blocks beyond `n_blocks` are for texts, a thread each.
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
