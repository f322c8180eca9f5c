// Unigram: the segmentation of a text with the greatest sum of scores, as models/unigram.h finds it (Viterbi).
//
// A warp walks the texts that begin in its span. The pieces that begin at a place depend on the text alone, so the
// lanes look up 32 places at a time. The sums are then computed from left to right, in the order and with the rounding
// of the CPU: each place relaxes the ends of the pieces that begin there. Of equal sums the first one is kept.
//
// The text is in its normal form (normal.cuh). A place is the first byte of a character, or the end of the text; gaps
// before a place belong to the character before. A place's entry in the lattice is stored at the byte before it, which
// belongs to the same text.
#include "base/hash.h"
#include "base/trie_unit.h"
#include "common/block.cuh"
#include "common/documents.cuh"
#include "common/normal.cuh"

namespace tokenweir::unigram {

constexpr uint32_t kThreads = 256, kSpan = 256, kTile = kThreads / 32 * kSpan;
constexpr uint32_t kMost = 12;  // pieces at a place that a lane keeps; if there are more, they are looked up again

// The treatment of control tokens among the model's pieces.
enum Control : uint32_t {
  kTaken,    // they are pieces like others
  kLeftOut,  // they are not pieces
  kRefused,  // documents that contain one are refused, since parts of the text are guarded
};

// Filled by gpu/modes/unigram.py.
template <class Score>
struct UnigramTables {
  static constexpr Score kMaxSum = 100000;  // SentencePiece rebases sums beyond this

  const TrieUnit* units;
  const Score* scores;       // by id, followed by the score of an unknown character
  const uint32_t* byte_ids;  // [256]; kNone without byte fallback
  const uint32_t* control;   // bit set of the ids of control tokens
  uint64_t root, n_ids, unknown;
};

// The best path to each place: its sum, its last piece, and the place where that piece begins.
template <class Score>
struct Lattice {
  Score* sums;
  uint32_t *pieces, *starts;  // pieces: the id + 1, or 0 without a path yet
};

template <class Score>
struct Texts {
  const UnigramTables<Score>& tables;
  const Documents& documents;
  const uint8_t* text;
  uint32_t n;
  const uint32_t* ends;  // bit map of the places where a text begins or ends
  uint32_t control;
  uint32_t *ids, *tokens;

  __device__ bool is_end(uint32_t place) const { return place >= n || has_bit(ends, place); }

  __device__ uint32_t behind_gaps(uint32_t place) const {
    while (!is_end(place) && text[place] == normal::kGap) place++;
    return place;
  }

  // The place after a character.
  __device__ uint32_t next(uint32_t place) const { return behind_gaps(place + utf8_length(text[place])); }

  // Calls `found(end, id)` for each piece that begins at a place, shortest first.
  template <class Found>
  __device__ void pieces_at(uint32_t place, const Found& found) const {
    for (uint32_t base = static_cast<uint32_t>(tables.root);;) {
      const uint8_t byte = text[place];
      const TrieUnit unit = tables.units[base ^ byte];
      if (!unit.is_child_by(byte)) return;
      base = unit.base;
      place = behind_gaps(place + 1);
      if (unit.value() != TrieUnit::kAbsent) found(place, unit.value());
      if (is_end(place)) return;
    }
  }

  __device__ bool is_allowed(uint32_t id, uint32_t place) const {
    if (control == kTaken || !has_bit(tables.control, id)) return true;
    if (control == kRefused) documents.refuse(place, kGuardedPiece);
    return false;
  }

  __device__ void put(uint32_t place, uint32_t id) const {
    ids[place] = id;
    set_bit(tokens, place);
  }

  // Writes a run of unknown pieces: one token if HuggingFace finds the run as a whole, else the tokens of its bytes if
  // all bytes have tokens, else one unknown token.
  __device__ void put_unknown(uint32_t begin, uint32_t end) const {
    if constexpr (sizeof(Score) == sizeof(double)) {
      uint32_t whole = kNone;
      pieces_at(begin, [&](uint32_t at, uint32_t id) {
        if (at == end) whole = id;
      });
      if (whole != kNone && is_allowed(whole, begin)) return put(begin, whole);
    }
    const auto is_token = [&](uint8_t byte) { return tables.byte_ids[byte] != kNone && is_allowed(tables.byte_ids[byte], begin); };
    bool all = true;
    for (uint32_t at = begin; at < end; at++) all = all && (text[at] == normal::kGap || is_token(text[at]));
    if (!all) return put(begin, static_cast<uint32_t>(tables.unknown));
    for (uint32_t at = begin; at < end; at++)
      if (text[at] != normal::kGap) put(at, tables.byte_ids[text[at]]);
  }

  // Traces the best path back from `end` to `begin`, and writes its ids.
  __device__ void trace(const Lattice<Score>& lattice, uint32_t begin, uint32_t end) const {
    uint32_t unknown_end = kNone;
    for (uint32_t at = end; at > begin;) {
      const uint32_t id = lattice.pieces[at - 1] - 1, start = lattice.starts[at - 1];
      if (id == tables.unknown) {
        if (unknown_end == kNone) unknown_end = at;
      } else {
        if (unknown_end != kNone) put_unknown(at, unknown_end);
        unknown_end = kNone;
        put(start, id);
      }
      at = start;
    }
    if (unknown_end != kNone) put_unknown(begin, unknown_end);
  }
};

// The pieces that begin at a lane's place, for the whole warp.
template <class Score>
struct Found {
  uint32_t n = 0, next, ends[kMost], ids[kMost];
  Score scores[kMost];
};

// The texts that begin in [first, last).
template <class Score>
__device__ void encode_texts(const Texts<Score>& texts, const Lattice<Score>& lattice, uint32_t first, uint32_t last,
                             uint32_t max_bytes) {
  const UnigramTables<Score>& tables = texts.tables;
  const uint32_t lane = lane_of_thread();
  // Of the current text: its first byte, its first character, and the last place that has a path.
  uint32_t begin = kNone, from = kNone, reach = 0;
  for (uint32_t block = first;; block += 32) {
    const uint32_t own = block + lane;
    const bool ends = texts.is_end(own);
    const uint8_t byte = own < texts.n ? texts.text[own] : normal::kGap;
    const uint32_t all_ends = __ballot_sync(kEveryLane, ends);
    const uint32_t characters = __ballot_sync(kEveryLane, byte != normal::kGap && !utf8_continues(byte));
    Found<Score> found;
    if (characters >> lane & 1 && (begin != kNone || all_ends & (kEveryLane >> (31 - lane)))) {
      found.next = texts.next(own);
      texts.pieces_at(own, [&](uint32_t end, uint32_t id) {
        if (!texts.is_allowed(id, own)) return;
        if (found.n < kMost) found.ends[found.n] = end, found.ids[found.n] = id, found.scores[found.n] = tables.scores[id];
        found.n++;
      });
    }
    for (uint32_t bits = all_ends | characters; bits; bits &= bits - 1) {
      const uint32_t i = static_cast<uint32_t>(__ffs(static_cast<int>(bits)) - 1), place = block + i;
      if (all_ends >> i & 1) {
        if (lane == 0 && from != kNone) texts.trace(lattice, from, place);
        if (place >= last) return;
        begin = place;
        from = kNone;
      }
      if (begin == kNone || !(characters >> i & 1)) continue;
      if (place - begin > max_bytes) {
        if (lane == 0) texts.documents.refuse(begin, kTooLong);
        begin = from = kNone;
        continue;
      }
      Score so_far = 0;
      if (from == kNone) {
        from = place;
      } else {
        so_far = lattice.sums[place - 1];
        if constexpr (sizeof(Score) == sizeof(float)) {
          if (so_far > tables.kMaxSum || so_far < -tables.kMaxSum) {  // rebase all sums in use
            for (uint32_t at = place + 1 + lane; at <= reach; at += 32)
              if (lattice.pieces[at - 1]) lattice.sums[at - 1] -= so_far;
            so_far = 0;
            __syncwarp();
          }
        }
      }
      if (lane == i) {
        const auto offer = [&](uint32_t end, uint32_t id, Score sum) {
          reach = max(reach, end);
          if (lattice.pieces[end - 1] && !(sum > lattice.sums[end - 1])) return;
          lattice.sums[end - 1] = sum;
          lattice.pieces[end - 1] = id + 1;
          lattice.starts[end - 1] = place;
        };
        bool is_known = false;
        const auto take = [&](uint32_t end, uint32_t id, Score score) {
          offer(end, id, so_far + score);
          is_known |= end == found.next;
        };
        if (found.n <= kMost)
          for (uint32_t k = 0; k < found.n; k++) take(found.ends[k], found.ids[k], found.scores[k]);
        else
          texts.pieces_at(place, [&](uint32_t end, uint32_t id) {
            if (texts.is_allowed(id, place)) take(end, id, tables.scores[id]);
          });
        if (!is_known) offer(found.next, static_cast<uint32_t>(tables.unknown), so_far + tables.scores[tables.n_ids]);
      }
      reach = __shfl_sync(kEveryLane, reach, static_cast<int>(i));
      __syncwarp();
    }
    if (begin == kNone && block + 32 >= last) return;
  }
}

template <class Score>
__device__ void encode_tile(const UnigramTables<Score>* tables, const uint8_t* text, uint32_t n, const int64_t* offsets,
                            uint32_t n_documents, const uint32_t* ends, uint32_t control, uint32_t max_bytes,
                            const Lattice<Score>& lattice, uint32_t* ids, uint32_t* tokens, uint32_t* refusals,
                            uint32_t* counters) {
  const uint32_t first = blockIdx.x * kTile + warp_of_thread() * kSpan;
  if (first >= n) return;
  const Documents documents{offsets, n_documents, refusals, counters};
  const UnigramTables<Score> own = *tables;
  encode_texts<Score>({own, documents, text, n, ends, control, ids, tokens}, lattice, first, min(first + kSpan, n), max_bytes);
}

}  // namespace tokenweir::unigram

// Encodes HuggingFace's models, whose sums are doubles: one block per tile, one warp per span, for the texts that begin
// there.
//
// text: in its normal form. ends: bit map of the beginnings of texts and added tokens. control: a `Control`. Documents
// with a text of more than `max_bytes` bytes are refused. sums, pieces, starts: the lattice, an entry for each byte of
// text; `pieces` is zeros at first. ids, tokens: as in encode_pieces.
extern "C" __global__ void __launch_bounds__(256, 4)
    encode_unigram64(const tokenweir::unigram::UnigramTables<double>* tables, const uint8_t* text, uint32_t n,
                     const int64_t* offsets, uint32_t n_documents, const uint32_t* ends, uint32_t control, uint32_t max_bytes,
                     double* sums, uint32_t* pieces, uint32_t* starts, uint32_t* ids, uint32_t* tokens, uint32_t* refusals,
                     uint32_t* counters) {
  tokenweir::unigram::encode_tile<double>(tables, text, n, offsets, n_documents, ends, control, max_bytes,
                                          {sums, pieces, starts}, ids, tokens, refusals, counters);
}

// Encodes SentencePiece's models, whose sums are floats; otherwise like encode_unigram64.
extern "C" __global__ void __launch_bounds__(256, 4)
    encode_unigram32(const tokenweir::unigram::UnigramTables<float>* tables, const uint8_t* text, uint32_t n,
                     const int64_t* offsets, uint32_t n_documents, const uint32_t* ends, uint32_t control, uint32_t max_bytes,
                     float* sums, uint32_t* pieces, uint32_t* starts, uint32_t* ids, uint32_t* tokens, uint32_t* refusals,
                     uint32_t* counters) {
  tokenweir::unigram::encode_tile<float>(tables, text, n, offsets, n_documents, ends, control, max_bytes,
                                         {sums, pieces, starts}, ids, tokens, refusals, counters);
}
