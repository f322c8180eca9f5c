// A pattern's tables (encode/pattern), checked and made ready to be walked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "automaton.h"
#include "errors.h"
#include "failed_search.h"

namespace tokenweir {

class CompiledPattern {
 public:
  CompiledPattern(std::vector<uint16_t> transitions, std::vector<uint16_t> class_index,
                  std::vector<uint8_t> class_pages, size_t n_classes)
      : transitions_(std::move(transitions)),
        class_index_(std::move(class_index)),
        class_pages_(std::move(class_pages)) {
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
    const size_t vain = count_vain_states(transitions_, width);
    if (vain > kMaxVainStates)
      throw Unsupported("a pattern whose searches can fail late in " + std::to_string(vain) + " states; at most " +
                        std::to_string(kMaxVainStates) + " are followed");
    searches_in_vain_ = vain > 0;
    tables_ = {ascii_.data(),       transitions_.data(),
               class_index_.data(), class_pages_.data(),
               static_cast<uint32_t>(n_classes), runs_.data(), run_states};
  }
  CompiledPattern(CompiledPattern&&) = default;  // moving a vector keeps its buffer, so `tables_` stays true
  CompiledPattern(const CompiledPattern&) = delete;

  const Automaton& automaton() const { return tables_; }

  // Calls `use(walk)`; `walk(p, gap)` is `Automaton::token_end` up to `end`, in linear time over all of a text.
  template <class Use>
  void walk(const uint8_t* end, Use&& use) const {
    if (searches_in_vain_) {
      FailedSearches searches;
      use([&](const uint8_t* p, bool& gap) { return searches.token_end(tables_, p, end, gap); });
    } else {
      const Automaton tables = tables_;
      use([&](const uint8_t* p, bool& gap) { return tables.token_end(p, end, gap); });
    }
  }

 private:
  static constexpr int kWorthARun = 20;  // letters of one case are; newlines are not
  static constexpr size_t kMaxVainStates = 256;

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
  bool searches_in_vain_;
  Automaton tables_;
};

}  // namespace tokenweir
