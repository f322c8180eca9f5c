// What every model does: it turns one piece of text into ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "base/id_buffer.h"
#include "base/radix_heap.h"
#include "vocabulary/word_table.h"
#include "cuts/byte_cuts.h"
#include "models/premerged_chars.h"
#include "cuts/split_points.h"
#include "base/span.h"

namespace tokenweir {

// The best way from the beginning of a text to one place of it, for a model that sums scores.
template <class Score>
struct BestPath {
  Score score;
  uint32_t id, start;  // of its last piece
};

// Symbols while they merge.
struct MergeWindow {
  std::vector<uint32_t> ids, priorities, next, previous;
  RadixHeap heap;
};

// A symbol that merging has left, and where it ends.
struct MergedSymbol {
  uint32_t id, end;
};

// Buffers that a model reuses from piece to piece.
struct ModelScratch {
  std::vector<uint32_t> ids;      // the symbols of a piece
  std::vector<uint32_t> lengths;  // how much text each stands for, where they do not tell
  MergeWindow window;
  std::vector<MergedSymbol> merged;
  std::tuple<std::vector<BestPath<float>>, std::vector<BestPath<double>>> lattices;  // by place in the piece

  size_t capacity() const {
    return ids.capacity() + window.ids.capacity() + merged.capacity() + std::get<0>(lattices).capacity() +
           std::get<1>(lattices).capacity();
  }
};

// As many words as a model encodes at once.
constexpr size_t kWordsAtOnce = 16;

// A piece of at most WordKey::kMaxBytes.
struct Word {
  const uint8_t* p;
  uint32_t n;
};

class Model {
 public:
  virtual ~Model() = default;

  // Whether guarded and plain encoding can differ at all.
  virtual bool guards() const = 0;

  // Appends the ids of one piece of text, `n` > 0 bytes; with `guarded`, no id of a control token. With `spans`, also
  // the bytes of the piece that each id stands for (of a character's bytes, one id may have them all, the others none).
  // An id of a piece depends on nothing outside it.
  virtual void encode(const uint8_t* p, size_t n, bool guarded, ModelScratch& scratch, IdBuffer& out,
                      std::vector<Span>* spans) const = 0;

  // The id that goes by the text it stands for instead of a name, in HuggingFace's Unigram that of unknown text.
  virtual std::optional<uint32_t> nameless() const { return std::nullopt; }

  // For models whose pieces are bytes that merge: the tokens as they are found by their bytes, and where a piece may be cut
  // if its parts are then merged, not looked up, and the ids of parts that are one character. Null: the model has none.
  // `ignores_merges`: a piece that is a token is that token, whatever merging makes of it.
  virtual const WordTable* words() const { return nullptr; }
  virtual const ByteCuts* byte_cuts() const { return nullptr; }
  virtual const PremergedChars* characters() const { return nullptr; }
  virtual bool ignores_merges() const { return false; }

  // Whether merging a token's bytes gives that token.
  virtual bool merges_to(uint32_t) const { return false; }

  // The token that a piece is, or kNone.
  virtual uint32_t token(const uint8_t*, size_t) const { return kNone; }

  // Appends the ids of a part of a piece, by merging alone.
  virtual void encode_part(const uint8_t*, size_t, ModelScratch&, IdBuffer&) const {}

  // Whether it can do the following.
  virtual bool encodes_words() const { return words() != nullptr; }

  // The same for at most kWordsAtOnce words at once. Of each that becomes at most WordBatch::kMaxIds ids it writes these to
  // `out` and their number to `counts`, else 0.
  virtual void encode_words(const Word*, size_t, int32_t (*)[WordBatch::kMaxIds], uint32_t*) const {}

  // The bytes of the longest piece that is worth keeping with its ids.
  virtual size_t max_cached_bytes() const { return 127; }

  // Where pieces may be cut further without a change to their ids; null if nothing is known.
  virtual const SplitPoints* split_points() const { return nullptr; }
};

}  // namespace tokenweir
