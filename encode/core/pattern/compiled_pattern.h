// A pattern's tables (encode/pattern), validated and prepared for walks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/utf8.h"
#include "pattern/automaton.h"
#include "pattern/context.h"
#include "pattern/rescan_analysis.h"
#include "pattern/scan_memo.h"

namespace tokenweir {

class CompiledPattern {
 public:
  // With a context, `n_classes` is the number of its symbols. `sync`: by two classes, whether a token always begins
  // between them.
  CompiledPattern(std::vector<uint16_t> transitions, std::vector<uint16_t> class_index,
                  std::vector<uint8_t> class_pages, size_t n_classes, std::vector<uint8_t> sync,
                  std::unique_ptr<const Context> context)
      : transitions_(std::move(transitions)),
        class_index_(std::move(class_index)),
        class_pages_(std::move(class_pages)),
        sync_(std::move(sync)),
        context_(std::move(context)) {
    const size_t width = n_classes + 1, n_states = transitions_.size() / width;
    if (n_states == 0 || transitions_.size() % width != 0 || class_index_.size() != 0x1100 ||
        class_pages_.size() % 256 != 0 || sync_.size() != n_classes * n_classes)
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
      if (members(runs_.back()) >= kMinRun) run_states |= uint64_t{1} << state;
    }
    for (size_t c = 0; c < n_classes; c++) cannot_start_.push_back(!context_ && is_always_gap(transitions_[c], width));
    const RescanAnalysis rescans(transitions_, width);
    may_rescan_ = rescans.may_repeat();
    if (may_rescan_ && rescans.n_states() > kMaxFailingStates)
      throw Unsupported("its searches can fail late in " + std::to_string(rescans.n_states()) + " states; at most " +
                        std::to_string(kMaxFailingStates) + " are followed");
    tables_ = {ascii_.data(),
               transitions_.data(),
               class_index_.data(),
               class_pages_.data(),
               static_cast<uint32_t>(n_classes),
               runs_.empty() ? nullptr : runs_.data(),
               run_states};
  }
  CompiledPattern(const CompiledPattern&) = delete;

  // Whether walks may read the same text repeatedly; `walk` then remembers where they failed.
  bool may_rescan() const { return may_rescan_; }

  // The tables of a pattern without a context, for a scanner, and their number of class pages.
  const Automaton& tables() const { return tables_; }
  size_t n_pages() const { return class_pages_.size() / 256; }

  // Whether no match can begin with a character, in any context.
  bool cannot_start_match(uint32_t c) const { return !context_ && cannot_start_[class_of(c)]; }

  // Whether a token begins at `at`, inside a text, by the characters beside it alone.
  bool is_sync(const uint8_t* at) const {
    if (context_) return false;
    const uint8_t* before = at;
    do before--;
    while (utf8_continues(*before));
    uint32_t length;
    const size_t left = class_of(utf8_decode(before, length)), right = class_of(utf8_decode(at, length));
    return sync_[left * tables_.n_classes + right];
  }

  // Calls `use(walk)`, where `walk(at, gap)` is `Automaton::token_end` inside [p, end), in linear time for the whole
  // text. It may return adjacent gaps as one.
  template <class Use>
  void walk(const uint8_t* p, const uint8_t* end, Use&& use) const {
    if (context_) {
      const std::vector<uint8_t> symbols = context_->read(p, end, [&](const uint8_t* at) {
        uint32_t length;
        return class_of(utf8_decode(at, length));
      });
      const SymbolAutomaton automaton{transitions_.data(), tables_.n_classes + size_t{1}, p, end, symbols.data()};
      ScanMemo searches;
      use([&](const uint8_t* at, bool& gap) { return searches.token_end(automaton, at, end, gap); });
    } else if (may_rescan_) {
      ScanMemo searches;
      use([&](const uint8_t* at, bool& gap) {
        const uint8_t* next = searches.token_end(tables_, at, end, gap);
        return gap ? skip_gap(next, end) : next;
      });
    } else {
      const Automaton tables = tables_;
      use([&](const uint8_t* at, bool& gap) {
        const uint8_t* next = tables.token_end(at, end, gap);
        return gap ? skip_gap(next, end) : next;
      });
    }
  }

 private:
  static constexpr int kMinRun = 20;  // a run with fewer members is not tested; letters of one case have 26
  static constexpr size_t kMaxFailingStates = 256;

  uint8_t class_of(uint32_t c) const { return class_pages_[class_index_[c >> 8] * 256u + (c & 0xFF)]; }

  // Whether a walk with this first entry can only end in a gap of one character.
  bool is_always_gap(uint16_t entry, size_t width) const {
    if ((entry & kMatchEnds) || (entry & kStateMask) == kDead) return false;
    const uint16_t* row = &transitions_[(entry & kStateMask) * width];
    return std::all_of(row, row + width, [](uint16_t next) { return next == (kMatchEnds | kGap | kDead); });
  }

  // Skips the characters at `p` with which no match can begin; they continue a gap.
  const uint8_t* skip_gap(const uint8_t* p, const uint8_t* end) const {
    for (uint32_t length; p < end; p += length) {
      const uint32_t c = utf8_decode(p, length);
      if (!cannot_start_[class_of(c)]) break;
    }
    return p;
  }

  // Returns the run of a state: of the entries that lead back to it, the one of most ASCII characters.
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
  std::vector<uint8_t> class_pages_, sync_;
  std::vector<Run> runs_;
  std::vector<bool> cannot_start_;  // by class: no match begins with it
  bool may_rescan_;
  std::unique_ptr<const Context> context_;
  Automaton tables_;
};

}  // namespace tokenweir
