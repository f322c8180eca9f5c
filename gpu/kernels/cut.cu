// One stage of the pre-tokenizer: an automaton cuts the text, and each thread starts at the first sure boundary in its
// span.
//
// A boundary is sure if the classes of the two characters end any walk there, whatever came before. A thread owns kSpan
// bytes, and all matches from the first sure boundary or section start in them up to the first one after them, where
// another thread has started. So each match is found by one thread, which reaches it as a sequential walk would.
// Adjacent characters that the pattern does not match form one piece, and only some sure boundaries are also sure to
// begin a piece; at the others the thread that arrives from the left decides.
//
// A block keeps the classes of its bytes, and of some more, in shared memory; walks beyond those compute classes anew.
#include "pattern/automaton.h"
#include "common/classes.cuh"

namespace tokenweir::cut {

constexpr uint32_t kThreads = 256, kSpan = 32, kTile = kThreads * kSpan;
constexpr int32_t kBefore = 4, kAfter = 252, kWindow = kBefore + kTile + kAfter;  // the bytes with classes in shared memory

// Threads read their spans at the same time; a word of padding after every 128 bytes keeps them on different banks.
__device__ inline uint32_t slot(uint32_t i) { return i + (i >> 7 << 2); }
constexpr uint32_t kSlots = kWindow + (kWindow / 128 + 1) * 4;

// The classes and transitions that a walk reads. Places are relative to the window's first byte.
struct Window {
  const CutText& text;
  const uint8_t* classes;  // [kSlots]
  const uint16_t* transitions;
  uint32_t width;
  int64_t origin;
  int32_t start = 0;  // of the current walk

  __device__ uint8_t class_at(int32_t at) const {
    return static_cast<uint32_t>(at) < static_cast<uint32_t>(kWindow) ? classes[slot(at)] : text.class_at(origin + at);
  }

  __device__ uint16_t at_end(uint32_t state) const { return transitions[state * width + width - 1]; }

  __device__ uint16_t at(uint32_t state, int32_t at, uint32_t& length) const {
    const uint8_t c = class_at(at);
    length = (c >> kLengthShift & 3u) + 1;
    if ((c & kClass) == kNoClass || (c & kBegins && at != start)) return at_end(state);
    return transitions[state * width + (c & kClass)];
  }

  // The class of the previous character; kNoClass at the beginning.
  __device__ uint8_t class_before(int32_t at) const {
    uint8_t c;
    do c = class_at(--at);
    while (c == kInside);
    return c & kClass;
  }
};

}  // namespace tokenweir::cut

// Sets a bit in `pieces` where a piece begins, and where an added token begins after text.
//
// begins: bit map of the beginnings of documents, or of the previous stage's pieces. taken: bit map of the bytes of
// added tokens. max_bytes: the most bytes of a match, or of text without a sure boundary; documents with more are
// refused.
extern "C" __global__ void __launch_bounds__(256, 6)
    cut_pieces(const tokenweir::CutTables* stage, const uint8_t* text, uint32_t n, const int64_t* offsets,
               uint32_t n_documents, const uint32_t* begins, const uint32_t* taken, uint32_t max_bytes, uint32_t* pieces,
               uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::cut;
  __shared__ uint32_t classes[kSlots / 4];
  __shared__ uint16_t transitions[CutTables::kMaxCells];
  __shared__ uint32_t boundaries[32], sync[32], found[kThreads];
  __shared__ uint8_t ascii[128];
  const uint32_t thread = threadIdx.x, tile = blockIdx.x * kTile;
  const CutTables tables = *stage;
  const Documents documents{offsets, n_documents, refusals, counters};
  const CutText cut{tables, documents, text, n, begins, taken};

  for (uint32_t i = thread; i < tables.n_cells; i += kThreads) transitions[i] = tables.transitions[i];
  if (thread < 32) boundaries[thread] = tables.boundaries[thread], sync[thread] = tables.sync[thread];
  if (thread < 128) ascii[thread] = tables.entry(thread) & kClass;
  found[thread] = 0;
  __syncthreads();

  const int64_t origin = int64_t{tile} - kBefore;
  for (uint32_t word = thread; word < kWindow / 4; word += kThreads) {
    const int64_t place = origin + 4 * word;
    uint32_t four = kOutside * 0x01010101u;
    if (place >= 0 && place + 4 <= n) {
      const uint32_t at = static_cast<uint32_t>(place), shift = at & 31;
      const uint32_t bytes = *reinterpret_cast<const uint32_t*>(text + at);
      const uint32_t taken_here = taken[at >> 5] >> shift & 0xF;
      uint32_t begins_here = begins[at >> 5] >> shift & 0xF;
      begins_here |= taken_here << 1 & 0xF;
      if (at > 0 && has_bit(taken, at - 1)) begins_here |= 1;
      four = 0;
      for (uint32_t k = 0; k < 4; k++) {
        const uint8_t byte = bytes >> 8 * k & 0xFF;
        uint32_t c = byte < 0x80 ? ascii[byte] : cut.class_of_multibyte(at + k);
        if (begins_here >> k & 1) c |= kBegins;
        if (taken_here >> k & 1) c = kOutside;
        four |= c << 8 * k;
      }
    } else if (place + 4 > 0 && place < n) {
      four = 0;
      for (uint32_t k = 0; k < 4; k++) four |= uint32_t{cut.class_at(place + k)} << 8 * k;
    }
    classes[slot(4 * word) / 4] = four;
  }
  __syncthreads();

  Window window{cut, reinterpret_cast<const uint8_t*>(classes), transitions, static_cast<uint32_t>(tables.width), origin};
  const auto begin_piece = [&](int32_t at) {
    const uint32_t i = static_cast<uint32_t>(at - kBefore);
    if (i < kTile)
      atomicOr(&found[i >> 5], 1u << (i & 31));
    else
      set_bit(pieces, tile + i);
  };
  // Whether `pairs` contains the previous character and the one at `at`, whose class byte is `c`.
  const auto is_sure = [&](const uint32_t* pairs, int32_t at, uint8_t c) {
    const uint8_t before = window.class_before(at);
    return before != kNoClass && (pairs[before] >> (c & kClass) & 1);
  };
  const auto walk_from = [&](int32_t at, bool& gap) {
    int32_t reached;
    window.start = at;
    bool too_far = false;  // set if a walk hit `limit`, so that its match may be too short
    const int32_t limit = at + static_cast<int32_t>(max_bytes) + 8;  // 8 more, since a walk looks one character ahead
    const auto gives_up = [&](int32_t place, uint32_t) { return too_far = place > limit; };
    const int32_t token_end = walk(window, at, INT32_MAX, gap, reached, gives_up);
    return too_far ? at : token_end;
  };
  int32_t at = kBefore + static_cast<int32_t>(thread * kSpan);
  const int32_t end = at + static_cast<int32_t>(kSpan);
  while (at < end) {
    const uint8_t c = window.class_at(at);
    if ((c & kClass) == kNoClass || !(c & kBegins || is_sure(boundaries, at, c))) {
      at++;
      continue;
    }
    const int32_t first = at;
    bool begins_piece = c & kBegins || is_sure(sync, at, c), gap = false;
    for (;;) {  // each match
      const bool after_gap = gap;
      const int32_t next = walk_from(at, gap);
      if (next <= at || next > end + static_cast<int32_t>(max_bytes)) {
        documents.refuse(tile + static_cast<uint32_t>(at - kBefore), kTooLong);
        begin_piece(at);  // the previous document's piece ends here
        at = end;
        break;
      }
      if (at != first) begins_piece = !(after_gap && gap) || window.class_at(at) & kBegins;
      if (begins_piece) begin_piece(at);
      at = next;
      const uint8_t c = window.class_at(at);
      if ((c & kClass) == kNoClass) break;  // an added token, or the end
      if (at < end || !(c & kBegins || is_sure(boundaries, at, c))) continue;
      if (!(c & kBegins) && !is_sure(sync, at, c)) {  // a thread that starts here cannot know whether a piece begins
        bool next_gap = false;
        if (gap) walk_from(at, next_gap);
        if (!next_gap) begin_piece(at);
      }
      break;
    }
  }
  __syncthreads();

  const uint32_t word = tile / 32 + thread;
  if (word >= (n + 31) / 32) return;
  const uint32_t taken_here = taken[word], taken_before = word > 0 ? taken[word - 1] >> 31 : 0;
  const uint32_t bits = found[thread] | (taken_here & ~(taken_here << 1 | taken_before));
  if (bits) atomicOr(&pieces[word], bits);
}
