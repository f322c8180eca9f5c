// Text to pieces: one automaton after the other, each inside the pieces of the one before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "automaton.h"
#include "errors.h"
#include "span.h"
#include "utf8.h"

namespace tokenweir {

// One stage with its own copy of the tables.
class Stage {
 public:
  Stage(std::vector<uint16_t> transitions, std::vector<uint16_t> class_index, std::vector<uint8_t> class_pages,
        size_t n_classes, bool keep_gaps)
      : transitions_(std::move(transitions)),
        class_index_(std::move(class_index)),
        class_pages_(std::move(class_pages)),
        keep_gaps_(keep_gaps) {
    const size_t width = n_classes + 1, n_states = transitions_.size() / width;
    if (n_states == 0 || class_index_.size() != 0x1100 || class_pages_.size() % 256 != 0)
      throw FileError("an automaton's tables have the wrong size");
    for (uint16_t page : class_index_)
      if ((page + 1u) * 256u > class_pages_.size()) throw FileError("an automaton's class page is out of range");
    for (uint8_t c : class_pages_)
      if (c >= n_classes) throw FileError("an automaton's class is out of range");
    for (uint16_t entry : transitions_)
      if ((entry & kStateMask) != kDead && (entry & kStateMask) >= n_states)
        throw FileError("an automaton's state is out of range");
    ascii_.resize(n_states * 128);
    for (size_t state = 0; state < n_states; state++)
      for (size_t c = 0; c < 128; c++)
        ascii_[state * 128 + c] = transitions_[state * width + class_pages_[class_index_[0] * 256u + c]];
    uint64_t run_states = 0;
    for (size_t state = 0; state < n_states && n_states <= Automaton::kMaxRunStates; state++) {
      runs_.push_back(run(&ascii_[state * 128], state));
      if (members(runs_.back()) >= kWorthARun) run_states |= uint64_t{1} << state;
    }
    tables_ = {ascii_.data(),       transitions_.data(),
               class_index_.data(), class_pages_.data(),
               static_cast<uint32_t>(n_classes), runs_.data(), run_states};
  }
  Stage(Stage&&) = default;  // moving a vector keeps its buffer, so `tables_` stays true
  Stage(const Stage&) = delete;

  const Automaton& automaton() const { return tables_; }

  // Calls `piece(begin, end)` for each piece of [p, end), in order. Neighbouring gaps are one piece.
  template <class Piece>
  void split(const uint8_t* p, const uint8_t* end, Piece&& piece) const {
    const Automaton tables = tables_;
    const uint8_t* gap_start = nullptr;
    while (p < end) {
      bool gap;
      const uint8_t* next = tables.token_end(p, end, gap);
      if (next == p) throw Unsupported("a pre-tokenizer matched nothing");
      if (gap) {
        if (!gap_start) gap_start = p;
      } else {
        if (gap_start) {
          if (keep_gaps_) piece(gap_start, p);
          gap_start = nullptr;
        }
        piece(p, next);
      }
      p = next;
    }
    if (gap_start && keep_gaps_) piece(gap_start, end);
  }

 private:
  static constexpr int kWorthARun = 20;  // letters of one case are; newlines are not

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
  bool keep_gaps_;
  Automaton tables_;
};

// The text that pieces are cut from: the original or, where a stage has changed it, a copy.
struct Frame {
  const uint8_t *start, *end;
  const std::vector<Span>* origins;  // for each byte of a copy, the bytes of the original; null: it is the original

  // The bytes of the original, from its start, that [b, e) stands for.
  Span original(const uint8_t* b, const uint8_t* e) const {
    if (!origins) return {static_cast<size_t>(b - start), static_cast<size_t>(e - start)};
    return {(*origins)[b - start].start, (*origins)[e - start - 1].end};
  }
};

// Where a thread keeps changed text.
struct PreTokenizerScratch {
  std::string text;
  std::vector<Span> origins;

  size_t capacity() const { return std::max(text.capacity(), origins.capacity()); }
};

class PreTokenizer {
 public:
  // `prefix_space`: text that does not begin with a space gets one (ByteLevel's add_prefix_space).
  PreTokenizer(std::vector<Stage> stages, bool prefix_space)
      : stages_(std::move(stages)), prefix_space_(prefix_space) {}
  PreTokenizer(PreTokenizer&&) = default;
  PreTokenizer(const PreTokenizer&) = delete;

  // Calls `piece(begin, end, frame)` for each piece of [p, end), in order. The pieces may lie in `scratch`;
  // `piece.flush()` is called before the text of earlier ones is overwritten, and they hold until the next split.
  // `at_start`: the original text begins at `p`. With `Spans`, frames have origins.
  template <bool Spans, class Visitor>
  void split(const uint8_t* p, const uint8_t* end, [[maybe_unused]] bool at_start, PreTokenizerScratch& scratch,
             Visitor& piece) const {
    if (p == end) return;
    if (prefix_space_ && *p != ' ') {
      const size_t n = static_cast<size_t>(end - p);
      scratch.text.assign(1, ' ');
      scratch.text.append(reinterpret_cast<const char*>(p), n);
      if constexpr (Spans) {
        const uint32_t first = utf8_length(*p);
        scratch.origins.assign(first + 1, {0, first});
        for (size_t i = first; i < n; i++) scratch.origins.push_back({i, i + 1});
      }
      p = reinterpret_cast<const uint8_t*>(scratch.text.data());
      return split(Frame{p, p + n + 1, &scratch.origins}, piece);
    }
    split(Frame{p, end, nullptr}, piece);
  }

 private:
  template <class Visitor>
  void split(const Frame& frame, Visitor& piece) const {
    const auto use = [&](const uint8_t* b, const uint8_t* e) { piece(b, e, frame); };
    if (stages_.size() == 1)
      stages_[0].split(frame.start, frame.end, use);  // the usual case, without a call per stage
    else
      split_from(0, frame.start, frame.end, use);
  }

  template <class Piece>
  void split_from(size_t stage, const uint8_t* p, const uint8_t* end, Piece& piece) const {
    if (stage == stages_.size())
      piece(p, end);
    else
      stages_[stage].split(p, end, [&](const uint8_t* b, const uint8_t* e) { split_from(stage + 1, b, e, piece); });
  }

  std::vector<Stage> stages_;
  bool prefix_space_;
};

}  // namespace tokenweir
