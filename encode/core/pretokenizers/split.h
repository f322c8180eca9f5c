// A stage that cuts: an automaton finds matches, and a behaviour says what becomes of them and of the gaps between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pattern/compiled_pattern.h"
#include "pretokenizers/frame.h"
#include "pretokenizers/scanner.h"

namespace tokenweir {

// HuggingFace's SplitDelimiterBehavior. Neighbouring gaps are one; neighbouring matches stay apart.
enum class Behavior : uint8_t { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

class Split : public PreTokenizerStage {
 public:
  // `inverted`: matches and gaps change places. `scanner`: finds the pieces of `pattern`, all of them matches; or null.
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
    if (!scanner_) return pattern_->walk(p, end, [&](auto&& walk) { behave(p, end, piece, walk); });
    scan(p, end, [&](const uint8_t* b, const uint32_t* ends, size_t n) {
      uint32_t begin = 0;
      for (size_t i = 0; i < n; begin = ends[i++]) piece(b + begin, b + ends[i]);
    });
  }

  // The same by the scanner: calls `pieces(begin, ends, n)` for some neighbours at a time, the first of which begins at
  // `begin`; their ends are counted from there.
  template <class Pieces>
  void scan(const uint8_t* p, const uint8_t* end, Pieces&& pieces) const {
    uint32_t ends[Scanner::kRoom];
    while (p < end) {
      const size_t n = scanner_->scan(p, end, ends);
      pieces(p, ends, n);
      p += ends[n - 1];
    }
  }

  const Scanner* scanner() const { return scanner_.get(); }

 private:
  template <class Piece, class Walk>
  void behave(const uint8_t* p, const uint8_t* end, Piece& piece, Walk&& walk) const {
    switch (behavior_) {
      case Behavior::kIsolated:
      case Behavior::kRemoved:
        return keep(p, end, piece, walk);
      case Behavior::kContiguous:
        return merge(p, end, walk, Contiguous<Piece>{piece});
      case Behavior::kMergedWithPrevious:
        return merge(p, end, walk, WithPrevious<Piece>{piece});
      case Behavior::kMergedWithNext:
        return merge(p, end, walk, WithNext<Piece>{piece});
    }
  }

  // Matches as they are and gaps joined; one or the other may be left out.
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
        if (next == p) {  // an empty match parts the gap
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
          if (match_end != p) merger.part();  // next to a match, an empty one does not count
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
    merger.part();
  }

  // What may still grow. `add` takes what is found, in order, and whether it is `marked`, that is, to be merged;
  // `part` ends all that is open.
  template <class Piece>
  struct Open {
    Piece& piece;
    const uint8_t *begin = nullptr, *end = nullptr;
    bool marked = false;

    void part() {
      if (begin) piece(begin, end);
      begin = nullptr;
    }
    void open(const uint8_t* b, const uint8_t* e, bool is_marked) {
      part();
      begin = b;
      end = e;
      marked = is_marked;
    }
  };

  // Neighbours of one kind are one piece.
  template <class Piece>
  struct Contiguous : Open<Piece> {
    void add(const uint8_t* b, const uint8_t* e, bool is_marked) {
      if (this->begin && this->marked == is_marked)
        this->end = e;
      else
        this->open(b, e, is_marked);
    }
  };

  // What is marked belongs to what is before it, unless that is marked too.
  template <class Piece>
  struct WithPrevious : Open<Piece> {
    void add(const uint8_t* b, const uint8_t* e, bool is_marked) {
      if (this->begin && is_marked && !this->marked) {
        this->end = e;
        this->marked = true;
      } else {
        this->open(b, e, is_marked);
      }
    }
  };

  // What is marked belongs to what is after it, unless that is marked too.
  template <class Piece>
  struct WithNext : Open<Piece> {
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
