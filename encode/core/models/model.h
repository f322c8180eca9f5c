// The interface of models: a piece of text to ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "base/radix_heap.h"
#include "base/span.h"
#include "cuts/byte_cuts.h"
#include "cuts/split_points.h"
#include "memory/id_buffer.h"
#include "models/premerged_chars.h"
#include "vocabulary/word_table.h"

namespace tokenweir {

// The best path from the start of a text to one place, for a model that sums scores.
template <class Score>
struct BestPath {
  Score score;
  uint32_t id, start;  // of the last piece of the path
};

// The state of `merge_at_once`.
struct MergeWindow {
  std::vector<uint32_t> ids, priorities, next, previous;
  RadixHeap heap;
};

// A symbol of the result of merging, and its end.
struct MergedSymbol {
  uint32_t id, end;
};

// Buffers that a model reuses from piece to piece.
struct ModelScratch {
  std::vector<uint32_t> ids;      // the symbols of a piece
  std::vector<uint32_t> lengths;  // bytes of each symbol, for models whose symbols do not imply them
  MergeWindow window;
  std::vector<MergedSymbol> merged;
  IdBuffer later_ids;  // of the pieces of a batch, in the order in which they are found
  std::tuple<std::vector<BestPath<float>>, std::vector<BestPath<double>>> lattices;  // by place in the piece

  size_t capacity() const {
    return ids.capacity() + window.ids.capacity() + merged.capacity() + later_ids.capacity() +
           std::get<0>(lattices).capacity() + std::get<1>(lattices).capacity();
  }
};

// A range of a buffer of ids.
struct IdRange {
  size_t begin, n;
};

// The most words that a model encodes at once.
constexpr size_t kWordsAtOnce = 16;

// A piece, or a part of one.
struct Word {
  const uint8_t* p;
  uint32_t n;
};

// The ids of a word.
struct MergedWord {
  static constexpr size_t kMaxIds = 16;

  int32_t ids[kMaxIds];
  uint32_t count;  // 0 if the word has too many symbols to merge it together with others

  // Whether `WordCache` can keep the ids.
  bool is_cacheable() const { return count - 1 < WordBatch::kMaxIds; }
};

class Model {
 public:
  virtual ~Model() = default;

  // Whether guarded and unguarded encoding can differ.
  bool guards() const { return guards_; }

  bool is_control(uint32_t id) const { return control_[id]; }

  // Appends the ids of one piece of `n` > 0 bytes; with `guarded`, never the id of a control token. Unless `spans` is
  // null, also appends the span of each id in the piece. (If several ids share a character, one may have all of it, and
  // the others empty spans.) The ids of a piece depend on nothing outside it.
  virtual void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
                      std::vector<Span>* spans) const = 0;

  // The id that is named by its text instead of its content: unknown text in HuggingFace's Unigram.
  virtual std::optional<uint32_t> nameless() const { return std::nullopt; }

  // For byte-level BPE, else null: the table of tokens by bytes; the cuts inside a piece, whose parts are then merged;
  // and the ids of single characters. `ignores_merges`: a piece that is a token becomes that token without merging.
  virtual const WordTable* words() const { return nullptr; }
  virtual const ByteCuts* byte_cuts() const { return nullptr; }
  virtual const PremergedChars* characters() const { return nullptr; }
  virtual bool ignores_merges() const { return false; }

  // Whether merging a token's bytes yields that token.
  virtual bool merges_to(uint32_t) const { return false; }

  // The token that equals a piece, or kNone.
  virtual uint32_t token(const uint8_t*, size_t) const { return kNone; }

  // Appends the ids of a part of a piece, by merging only.
  virtual void encode_part(const uint8_t*, size_t, ModelScratch&, IdBuffer&) const {}

  // Whether the model implements `encode_words`.
  virtual bool encodes_words() const { return words() != nullptr; }

  // Encodes at most kWordsAtOnce words at once.
  virtual void encode_words(const Word*, size_t, MergedWord*) const {}

  // The length of the longest piece that is worth caching, in bytes.
  virtual size_t max_cached_bytes() const { return 127; }

  // The places where a piece may be cut without changing its ids; null if unknown.
  virtual const SplitPoints* split_points() const { return nullptr; }

 protected:
  // Marks the control tokens: those of `ids` below `size` for which `may_be_made(id)`. Returns whether there are any.
  template <class MayBeMade>
  bool mark_control(const std::vector<uint32_t>& ids, size_t size, MayBeMade&& may_be_made) {
    bool any = false;
    control_.assign(size, false);
    for (const uint32_t id : ids)
      if (id < size && may_be_made(id)) control_[id] = any = true;
    return any;
  }

  std::vector<bool> control_;  // by id
  bool guards_ = false;
};

}  // namespace tokenweir
