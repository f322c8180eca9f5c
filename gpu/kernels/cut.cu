// One stage of the pre-tokenizer: an automaton cuts the text, and each thread starts at the first sure boundary in its
// span.
//
// A boundary is sure if the classes of the two characters end any walk there, whatever came before. A thread owns a span
// of bytes, fewer in a small batch, and all matches from the first sure boundary or section start in them up to the
// first one after them, where another thread has started. So each match is found by one thread, which reaches it as a sequential walk would.
// Adjacent characters that the pattern does not match, gaps, form one piece. At the boundary where a thread meets the
// next one, each of them sets the bit if its own match there is no gap.
//
// A block keeps the classes of its bytes, and of some more, in shared memory; walks beyond those compute classes anew.
// Each turn of a walk's loop takes one character, whether or not a match ends there: with a loop for each match, the
// threads of a warp would wait for the longest of their matches.
//
// The last stage of byte-level BPE also finds the cuts: places inside pieces that no merge crosses (common/joins.cuh).
#include "common/classes.cuh"
#include "common/joins.cuh"
#include "pattern/automaton.h"

namespace tokenweir::cut {

constexpr uint32_t kThreads = 256, kSpan = 32, kTile = kThreads * kSpan;  // at most
constexpr int32_t kUnit = 8;  // the bytes whose classes a thread finds at a time
constexpr int32_t kBefore = kUnit, kAfter = 248,
                  kWindow = kBefore + kTile + kAfter;  // the bytes with classes in shared memory, at most

// Threads read their spans at the same time; a word of padding after every 128 bytes keeps them on different banks.
__device__ inline uint32_t slot(uint32_t i) { return i + (i >> 7 << 2); }
constexpr uint32_t kSlots = kWindow + (kWindow / 128 + 1) * 4;

// The classes that a walk reads. Places are relative to the window's first byte.
struct Window {
  const CutText& text;
  const uint8_t* classes;  // [kSlots]
  uint32_t tile;           // the place of the window's byte kBefore
  int32_t of_tile;         // the bytes of the tile

  __device__ uint8_t near(int32_t at) const { return classes[slot(static_cast<uint32_t>(at))]; }  // within the window

  __device__ int32_t end() const { return kBefore + of_tile + kAfter; }

  template <bool kNear>
  __device__ uint8_t class_at(int32_t at) const {
    if (kNear || (at >= 0 && at < end())) return near(at);
    return text.class_at(int64_t{tile} + at - kBefore);
  }

  // The first byte of the character before `at`, which is kBefore or more; or a place before it that is of none.
  template <bool kNear>
  __device__ int32_t before(int32_t at) const {
    do at--;
    while (class_at<kNear>(at) == kInside);
    return at;
  }
};

struct Transitions {
  const uint16_t* entries;     // with the next state as the index of its row
  const uint32_t* boundaries;  // as in `CutTables`
  uint32_t at_end;             // the last column

  __device__ bool is_boundary(uint32_t before, uint8_t c) const { return boundaries[before] >> (c & kClass) & 1; }
};

// A match: where it begins, whether a section begins there, and whether the match before it is a gap, or unknown.
struct Match {
  int32_t begin;
  uint32_t is_first, after_gap;
};

// Walks from `match` to the first sure boundary from `end` on, or to an added token, whose place `at` becomes. Calls
// `begin_piece(place)` for each piece. Returns false if the walk leaves the window (kNear), or is longer than
// `max_bytes`, which is more than a window, or gets nowhere; then `match` is the match that it has not finished.
template <bool kNear, class BeginPiece>
__device__ bool walk_span(const Window& window, const Transitions& table, int32_t end, int32_t max_bytes,
                          const BeginPiece& begin_piece, Match& match, int32_t& at) {
  at = match.begin;
  int32_t match_end = at;
  uint32_t row = 0, gap = 0;
  for (;;) {
    if (kNear && at >= window.end()) return false;
    const uint32_t c = window.class_at<kNear>(at), kind = c & kClass;
    const bool ends = kind == kNoClass || (c & kBegins && at != match.begin);
    const uint32_t entry = table.entries[row + (ends ? table.at_end : kind)];
    if (entry & kMatchEnds) match_end = at, gap = entry & kGap;
    row = entry & kStateMask;
    if (row != kDead) {
      at += static_cast<int32_t>(c >> kLengthShift & 3u) + 1;
      if (!kNear && at - match.begin > max_bytes + 8) return false;  // 8 more, since a walk looks ahead
      continue;
    }
    if (match_end <= match.begin || (!kNear && match_end - end > max_bytes)) return false;
    if (match.is_first || !(match.after_gap && gap)) begin_piece(match.begin);
    at = match_end;
    row = 0;
    const uint32_t next = window.class_at<kNear>(at);
    match = {at, next & kBegins, gap};
    if ((next & kClass) == kNoClass) return true;  // an added token, or the end
    if (at < end) continue;
    if (match.is_first || table.is_boundary(window.class_at<kNear>(window.before<kNear>(at)) & kClass, next)) {
      if (!gap) begin_piece(at);
      return true;
    }
  }
}

// The classes of a unit's bytes, and the cuts there: places between two characters of a section that no token joins.
struct Unit {
  uint64_t classes;
  uint32_t cuts;
};

// Finds the classes of a unit at `place` with characters beyond ASCII, without `kBegins`, and its cuts if there are
// `joins`. Returns false if its bytes are not UTF-8.
__device__ inline bool find_unit(const CutText& text, const JoinTables& joins, uint32_t place, Unit& unit) {
  constexpr uint64_t kHigh = 0x8080808080808080;
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(text.text + place);
  const uint32_t before = place > 0 ? words[-1] : 0, low = words[0], high = words[1], after = words[2];
  const uint64_t here = uint64_t{high} << 32 | low;
  const uint64_t inside = here & ~(here << 1) & kHigh;
  unit = {(inside >> 2) - (inside >> 7), 0};  // kInside at those bytes
  int32_t k = -1;                             // where a character begins, from `place` on
  if ((before & 0xC0000000) == 0x80000000)
    k = (before & 0xC00000) == 0x800000 ? (before & 0xC000) == 0x8000 ? -4 : -3 : -2;
  uint32_t last = 0, entry = 0;
  while (k < kUnit) {  // where a byte is not as the character before it wants, `multibyte` finds that
    const uint32_t first = k < 0 ? before : k < 4 ? low : high, second = k < 0 ? low : k < 4 ? high : after;
    const uint32_t bytes = static_cast<uint32_t>((uint64_t{second} << 32 | first) >> 8 * (k & 3));
    uint32_t c = bytes & 0x7F, length = 1;
    if (bytes & 0x80 && (length = multibyte(bytes, c)) == kNotUtf8) return false;
    const uint32_t last_entry = entry;
    entry = text.tables.entries[c];
    if (k >= 0) {
      text.check_order(place + static_cast<uint32_t>(k), c, entry);
      unit.classes |= uint64_t{entry & kClass | (length - 1) << kLengthShift} << 8 * k;
      if (joins.joined && joins.may_cut(last, last_entry, c, entry)) unit.cuts |= 1u << k;
    }
    last = c;
    k += static_cast<int32_t>(length);
  }
  return true;
}

}  // namespace tokenweir::cut

// Sets a bit in `pieces` where a piece begins, and where an added token begins after text.
//
// begins: bit map of the beginnings of documents, or of the previous stage's pieces. taken: bit map of the bytes of
// added tokens. of_tile: the bytes of a block, 8 to kSpan for each thread. max_bytes: the most bytes of a match, or of
// text without a sure boundary; documents with more are refused. joins: the table for cuts, whose bit map is `cuts`; or null.
extern "C" __global__ void __launch_bounds__(256, 5)
    cut_pieces(const tokenweir::CutTables* stage, const uint8_t* text, uint32_t n, const int64_t* offsets,
               uint32_t n_documents, const uint32_t* begins, const uint32_t* taken, uint32_t of_tile,
               uint32_t max_bytes, uint32_t* pieces, const tokenweir::JoinTables* joins, uint32_t* cuts,
               uint32_t* refusals, uint32_t* counters) {
  using namespace tokenweir;
  using namespace tokenweir::cut;
  __shared__ uint32_t classes[kSlots / 4];
  __shared__ uint16_t transitions[CutTables::kMaxCells];
  __shared__ uint32_t boundaries[32], found[kThreads], found_cuts[kThreads];
  __shared__ uint8_t ascii[128];
  const uint32_t thread = threadIdx.x, tile = blockIdx.x * of_tile, span = of_tile / kThreads;
  const CutTables& tables = *stage;
  const Documents documents{offsets, n_documents, refusals, counters};
  const CutText cut{tables, documents, text, n, begins, taken};
  const uint32_t width = static_cast<uint32_t>(tables.width);

  for (uint32_t i = thread; i < tables.n_cells; i += kThreads) {  // with the next state as the index of its row
    const uint32_t entry = tables.transitions[i], next = entry & kStateMask;
    transitions[i] = static_cast<uint16_t>(next == kDead ? entry : entry - next + next * width);
  }
  if (thread < 32) boundaries[thread] = tables.boundaries[thread];
  if (thread < 128) ascii[thread] = tables.entries[thread] & kClass;
  found[thread] = 0;
  __syncthreads();

  const JoinTables table_of_joins = joins ? *joins : JoinTables{};
  const uint64_t* const eights = reinterpret_cast<const uint64_t*>(text);
  const Window window{cut, reinterpret_cast<const uint8_t*>(classes), tile, static_cast<int32_t>(of_tile)};
  for (uint32_t i = thread; i < static_cast<uint32_t>(window.end()) / kUnit; i += kThreads) {
    const int64_t place = int64_t{tile} + kUnit * i - kBefore;
    Unit unit{0, 0};
    if (place >= 0 && place + kUnit <= n) {
      const uint32_t at = static_cast<uint32_t>(place), shift = at & 31;
      const uint64_t bytes = eights[at / kUnit];
      const uint32_t taken_here = taken[at >> 5] >> shift & 0xFF;
      uint32_t begins_here = begins[at >> 5] >> shift & 0xFF;
      if (at > 0 && has_bit(taken, at - 1)) begins_here |= 1;
      if ((bytes & 0x8080808080808080) == 0 && taken_here == 0) {  // no cuts, although one may be before the first byte
        for (uint32_t k = 0; k < kUnit; k++) unit.classes |= uint64_t{ascii[bytes >> 8 * k & 0xFF]} << 8 * k;
      } else if (taken_here || !find_unit(cut, table_of_joins, at, unit)) {
        unit = {0, 0};
        for (uint32_t k = 0; k < kUnit; k++) unit.classes |= uint64_t{cut.class_at(place + k)} << 8 * k;
      }
      unit.cuts &= ~begins_here;
      for (uint32_t bits = begins_here; bits; bits &= bits - 1)
        unit.classes |= uint64_t{kBegins} << 8 * (__ffs(static_cast<int>(bits)) - 1);
    } else {
      for (uint32_t k = 0; k < kUnit; k++) unit.classes |= uint64_t{cut.class_at(place + k)} << 8 * k;
    }
    const uint32_t word = slot(kUnit * i) / 4;
    classes[word] = static_cast<uint32_t>(unit.classes), classes[word + 1] = static_cast<uint32_t>(unit.classes >> 32);
    const uint32_t own = i - kBefore / kUnit;
    if (own < of_tile / kUnit) reinterpret_cast<uint8_t*>(found_cuts)[own] = static_cast<uint8_t>(unit.cuts);
  }
  __syncthreads();

  const auto begin_piece = [&](int32_t at) {
    const uint32_t i = static_cast<uint32_t>(at - kBefore);
    if (i < of_tile)
      atomicOr(&found[i >> 5], 1u << (i & 31));
    else
      set_bit(pieces, tile + i);
  };
  const Transitions table{transitions, boundaries, width - 1};
  int32_t at = kBefore + static_cast<int32_t>(thread * span);
  const int32_t end = at + static_cast<int32_t>(span), most = static_cast<int32_t>(max_bytes);
  uint32_t before = window.near(window.before<true>(at)) & kClass;
  while (at < end) {
    const uint8_t c = window.near(at);
    if ((c & kClass) == kNoClass || !(c & kBegins || table.is_boundary(before, c))) {
      if (c != kInside) before = c & kClass;
      at += (c & kClass) == kNoClass ? 1 : static_cast<int32_t>(c >> kLengthShift & 3u) + 1;
      continue;
    }
    Match match{at, c & uint32_t{kBegins}, true};
    if (!walk_span<true>(window, table, end, most, begin_piece, match, at) &&
        !walk_span<false>(window, table, end, most, begin_piece, match, at)) {
      documents.refuse(tile + static_cast<uint32_t>(match.begin - kBefore), kTooLong);
      begin_piece(match.begin);  // the previous document's piece ends here
      at = end;
    }
    before = kNoClass;
  }
  __syncthreads();

  const uint32_t word = tile / 32 + thread;
  if (thread >= of_tile / 32 || word >= (n + 31) / 32) return;
  const uint32_t taken_here = taken[word], taken_before = word > 0 ? taken[word - 1] >> 31 : 0;
  const uint32_t bits = found[thread] | (taken_here & ~(taken_here << 1 | taken_before));
  if (bits) atomicOr(&pieces[word], bits);
  if (joins) cuts[word] = found_cuts[thread];
}
