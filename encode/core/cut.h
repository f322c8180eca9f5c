// A stage that cuts: an automaton finds matches, and a behaviour says what becomes of them and of the gaps between.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "automaton.h"
#include "context.h"
#include "errors.h"
#include "failed_search.h"
#include "frame.h"
#include "vain_search.h"

namespace tokenweir {

// HuggingFace's SplitDelimiterBehavior. Neighbouring gaps are one; neighbouring matches stay apart.
enum class Behavior : uint8_t { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

class Cut : public PreTokenizerStage {
 public:
  // `inverted`: matches and gaps change places. The tables are those of encode/pattern; with a context, `n_classes` is
  // the number of its symbols.
  Cut(std::vector<uint16_t> transitions, std::vector<uint16_t> class_index, std::vector<uint8_t> class_pages,
      size_t n_classes, Behavior behavior, bool inverted, std::unique_ptr<const Context> context)
      : transitions_(std::move(transitions)),
        class_index_(std::move(class_index)),
        class_pages_(std::move(class_pages)),
        behavior_(behavior),
        inverted_(inverted),
        context_(std::move(context)) {
    const size_t width = n_classes + 1, n_states = transitions_.size() / width;
    if (n_states == 0 || transitions_.size() % width != 0 || class_index_.size() != 0x1100 ||
        class_pages_.size() % 256 != 0)
      throw FileError("an automaton's tables have the wrong size");
    for (uint16_t page : class_index_)
      if ((page + 1u) * 256u > class_pages_.size()) throw FileError("an automaton's class page is out of range");
    for (uint8_t c : class_pages_)
      if (c >= (context_ ? context_->n_classes() : n_classes)) throw FileError("an automaton's class is out of range");
    for (uint16_t entry : transitions_)
      if ((entry & kStateMask) != kDead && (entry & kStateMask) >= n_states)
        throw FileError("an automaton's state is out of range");
    if (!context_) ascii_.resize(n_states * 128);
    for (size_t state = 0; state < n_states && !context_; state++)
      for (size_t c = 0; c < 128; c++)
        ascii_[state * 128 + c] = transitions_[state * width + class_pages_[class_index_[0] * 256u + c]];
    uint64_t run_states = 0;
    for (size_t state = 0; state < n_states && n_states <= Automaton::kMaxRunStates && !context_; state++) {
      runs_.push_back(run(&ascii_[state * 128], state));
      if (members(runs_.back()) >= kWorthARun) run_states |= uint64_t{1} << state;
    }
    for (size_t c = 0; c < n_classes; c++) starts_none_.push_back(!context_ && ends_at_once(transitions_[c], width));
    const VainSearch vain(transitions_, width);
    searches_in_vain_ = vain.may_repeat();
    if (searches_in_vain_ && vain.n_states() > kMaxVainStates)
      throw Unsupported("its searches can fail late in " + std::to_string(vain.n_states()) +
                        " states; at most " + std::to_string(kMaxVainStates) + " are followed");
    keeps_matches_ = behavior != Behavior::kRemoved || inverted;
    keeps_gaps_ = behavior != Behavior::kRemoved || !inverted;
    tables_ = {ascii_.data(),       transitions_.data(),
               class_index_.data(), class_pages_.data(),
               static_cast<uint32_t>(n_classes), runs_.data(), run_states};
  }
  Cut(const Cut&) = delete;

  // Calls `piece(begin, end)` for each piece of [p, end), in order.
  template <class Piece>
  void split(const uint8_t* p, const uint8_t* end, Piece&& piece) const {
    if (searches_in_vain_ || context_ || behavior_ > Behavior::kRemoved) return split_rarely(p, end, piece);
    const Automaton tables = tables_;
    keep(p, end, piece, [&](const uint8_t* from, bool& gap) {
      const uint8_t* next = tables.token_end(from, end, gap);
      return gap ? skip_gap(next, end) : next;
    });
  }

 private:
  static constexpr int kWorthARun = 20;  // letters of one case are; newlines are not
  static constexpr size_t kMaxVainStates = 256;

  // The other cases.
  template <class Piece>
  void split_rarely(const uint8_t* p, const uint8_t* end, Piece&& piece) const {
    if (context_) {
      const auto class_of = [&](const uint8_t* at) {
        uint32_t length;
        const uint32_t c = utf8_decode(at, length);
        return class_pages_[class_index_[c >> 8] * 256u + (c & 0xFF)];
      };
      const std::vector<uint8_t> symbols = context_->read(p, end, class_of);
      const SymbolAutomaton automaton{transitions_.data(), tables_.n_classes + size_t{1}, p, end, symbols.data()};
      FailedSearches searches;
      behave(p, end, piece,
             [&](const uint8_t* from, bool& gap) { return searches.token_end(automaton, from, end, gap); });
    } else if (searches_in_vain_) {
      FailedSearches searches;
      behave(p, end, piece, [&](const uint8_t* from, bool& gap) {
        const uint8_t* next = searches.token_end(tables_, from, end, gap);
        return gap ? skip_gap(next, end) : next;
      });
    } else {
      const Automaton tables = tables_;
      behave(p, end, piece, [&](const uint8_t* from, bool& gap) {
        const uint8_t* next = tables.token_end(from, end, gap);
        return gap ? skip_gap(next, end) : next;
      });
    }
  }

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
  void keep(const uint8_t* p, const uint8_t* end, Piece& piece, Walk&& walk) const {
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

  // Whether a walk that begins so can only find that its first character is a gap.
  bool ends_at_once(uint16_t entry, size_t width) const {
    if ((entry & kMatchEnds) || (entry & kStateMask) == kDead) return false;
    const uint16_t* row = &transitions_[(entry & kStateMask) * width];
    return std::all_of(row, row + width, [](uint16_t next) { return next == (kMatchEnds | kGap | kDead); });
  }

  // Past the characters at `p` that no match begins with; they are the rest of a gap.
  const uint8_t* skip_gap(const uint8_t* p, const uint8_t* end) const {
    for (uint32_t length; p < end; p += length) {
      const uint32_t c = utf8_decode(p, length);
      if (!starts_none_[class_pages_[class_index_[c >> 8] * 256u + (c & 0xFF)]]) break;
    }
    return p;
  }

  // The run of a state: of the entries that lead back to it, the one that most ASCII characters have.
  static Run run(const uint16_t* entries, size_t state) {
    Run best{};
    for (size_t c = 0; c < 128; c++) {
      if ((entries[c] & kStateMask) != state) continue;
      Run run{{}, entries[c]};
      for (size_t d = 0; d < 128; d++)
        if (entries[d] == entries[c]) run.low[d % 16] |= static_cast<uint8_t>(1 << d / 16);
      if (members(run) > members(best)) best = run;
    }
    return best;
  }

  static int members(const Run& run) {
    int n = 0;
    for (const uint8_t bits : run.low) n += __builtin_popcount(bits);
    return n;
  }

  std::vector<uint16_t> transitions_, class_index_, ascii_;
  std::vector<uint8_t> class_pages_;
  std::vector<Run> runs_;
  std::vector<uint8_t> starts_none_;  // by class
  Behavior behavior_;
  bool inverted_, keeps_matches_, keeps_gaps_, searches_in_vain_;
  std::unique_ptr<const Context> context_;
  Automaton tables_;
};

}  // namespace tokenweir
