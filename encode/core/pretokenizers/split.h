// The stage that splits: an automaton finds matches, and a behavior decides which matches and gaps become pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "pattern/compiled_pattern.h"
#include "pretokenizers/aligned_text.h"
#include "pretokenizers/scanner.h"

namespace tokenweir {

// HuggingFace's SplitDelimiterBehavior. Adjacent gaps are joined; adjacent matches are not.
enum class Behavior : uint8_t { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

class Split : public PreTokenizerStage {
 public:
  // `inverted`: matches and gaps are swapped. `scanner`: the fast path of a pattern whose pieces are all matches, or
  // null.
  Split(std::shared_ptr<const CompiledPattern> pattern, Behavior behavior, bool inverted,
        std::unique_ptr<const Scanner> scanner)
      : pattern_(std::move(pattern)),
        scanner_(std::move(scanner)),
        behavior_(behavior),
        inverted_(inverted),
        keeps_matches_(behavior != Behavior::kRemoved || inverted),
        keeps_gaps_(behavior != Behavior::kRemoved || !inverted) {}
  Split(const Split&) = delete;

  // Calls `piece(begin, end)` for each piece of [p, end), in order.
  template <class Piece>
  void split(const uint8_t* p, const uint8_t* end, Piece&& piece) const {
    if (!scanner_) return pattern_->walk(p, end, [&](auto&& walk) { apply_behavior(p, end, piece, walk); });
    scan(p, end, [&](const uint8_t* b, const uint32_t* ends, size_t n) {
      uint32_t begin = 0;
      for (size_t i = 0; i < n; begin = ends[i++]) piece(b + begin, b + ends[i]);
    });
  }

  // Splits by the scanner: calls `pieces(begin, ends, n)` for adjacent pieces. The first begins at `begin`; ends are
  // relative to it.
  template <class Pieces>
  void scan(const uint8_t* p, const uint8_t* end, Pieces&& pieces) const {
    uint32_t ends[Scanner::kMaxEnds];
    while (p < end) {
      const size_t n = scanner_->scan(p, end, ends);
      pieces(p, ends, n);
      p += ends[n - 1];
    }
  }

  const Scanner* scanner() const { return scanner_.get(); }

  // Whether a piece begins at `at`, inside a text, by the characters beside it alone. Merging matches may undo that.
  bool is_sync(const uint8_t* at) const {
    return (behavior_ == Behavior::kIsolated || behavior_ == Behavior::kRemoved) && pattern_->is_sync(at);
  }

 private:
  template <class Piece, class Walk>
  void apply_behavior(const uint8_t* p, const uint8_t* end, Piece& piece, Walk&& walk) const {
    switch (behavior_) {
      case Behavior::kIsolated:
      case Behavior::kRemoved: return keep(p, end, piece, walk);
      case Behavior::kContiguous: return merge(p, end, walk, Contiguous<Piece>{piece});
      case Behavior::kMergedWithPrevious: return merge(p, end, walk, WithPrevious<Piece>{piece});
      case Behavior::kMergedWithNext: return merge(p, end, walk, WithNext<Piece>{piece});
    }
  }

  // Emits matches and joined gaps; one or the other may be dropped.
  template <class Piece, class Walk>
  void keep(const uint8_t* p, const uint8_t* end, Piece& piece, Walk& walk) const {
    const bool keeps_gaps = keeps_gaps_, keeps_matches = keeps_matches_;
    const uint8_t* gap_start = nullptr;
    while (p < end) {
      bool gap;
      const uint8_t* next = walk(p, gap);
      if (gap) {
        if (!gap_start) gap_start = p;
      } else {
        if (gap_start && keeps_gaps) piece(gap_start, p);
        gap_start = nullptr;
        if (next == p) {  // an empty match splits the gap
          gap_start = p;
          next += utf8_length(*p);
        } else if (keeps_matches) {
          piece(p, next);
        }
      }
      p = next;
    }
    if (gap_start && keeps_gaps) piece(gap_start, end);
  }

  template <class Walk, class Merger>
  void merge(const uint8_t* p, const uint8_t* end, Walk& walk, Merger merger) const {
    const uint8_t *gap_start = nullptr, *match_end = nullptr;
    const auto end_gap = [&](const uint8_t* at) {
      if (gap_start) merger.add(gap_start, at, inverted_);
      gap_start = nullptr;
    };
    while (p < end) {
      bool gap;
      const uint8_t* next = walk(p, gap);
      if (gap) {
        if (!gap_start) gap_start = p;
      } else {
        end_gap(p);
        if (next == p) {
          if (match_end != p) merger.finish();  // an empty match right after a match does not count
          gap_start = p;
          next += utf8_length(*p);
        } else {
          merger.add(p, next, !inverted_);
          match_end = next;
        }
      }
      p = next;
    }
    end_gap(end);
    merger.finish();
  }

  // The piece that may still grow. `add` takes the next match or gap, and whether it is `marked`, that is, to be
  // merged; `finish` emits the pending piece.
  template <class Piece>
  struct PendingPiece {
    Piece& piece;
    const uint8_t *begin = nullptr, *end = nullptr;
    bool marked = false;

    void finish() {
      if (begin) piece(begin, end);
      begin = nullptr;
    }
    void open(const uint8_t* b, const uint8_t* e, bool is_marked) {
      finish();
      begin = b;
      end = e;
      marked = is_marked;
    }
  };

  // Joins neighbours of one kind.
  template <class Piece>
  struct Contiguous : PendingPiece<Piece> {
    void add(const uint8_t* b, const uint8_t* e, bool is_marked) {
      if (this->begin && this->marked == is_marked)
        this->end = e;
      else
        this->open(b, e, is_marked);
    }
  };

  // Joins a marked one to its predecessor, unless that is marked too.
  template <class Piece>
  struct WithPrevious : PendingPiece<Piece> {
    void add(const uint8_t* b, const uint8_t* e, bool is_marked) {
      if (this->begin && is_marked && !this->marked) {
        this->end = e;
        this->marked = true;
      } else {
        this->open(b, e, is_marked);
      }
    }
  };

  // Joins a marked one to its successor, unless that is marked too.
  template <class Piece>
  struct WithNext : PendingPiece<Piece> {
    void add(const uint8_t* b, const uint8_t* e, bool is_marked) {
      if (this->begin && this->marked && !is_marked) {
        this->end = e;
        this->marked = false;
      } else {
        this->open(b, e, is_marked);
      }
    }
  };

  std::shared_ptr<const CompiledPattern> pattern_;
  std::unique_ptr<const Scanner> scanner_;
  Behavior behavior_;
  bool inverted_, keeps_matches_, keeps_gaps_;
};

}  // namespace tokenweir
