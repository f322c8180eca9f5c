// The merging of several words at once: pieces of at most 16 symbols, as most new pieces are.
//
// To merge a word is to wait: each merge asks for two pairs, in tables of megabytes. So all words take a step together,
// and the memory that one asks for arrives while the others ask. Inside a word no symbol moves and no search ends early,
// since the processor could not foretell where.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "models/model.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

// A word while it merges.
struct MergingWord {
  static constexpr uint32_t kSymbols = 16;

  uint32_t ids[kSymbols];    // of the symbols
  uint32_t pairs[kSymbols];  // the priority of the pair that begins there with the place below it, or kNone
  uint32_t left;             // a bit for each symbol that is left

  // The symbols `ids` and the priorities of their pairs in `pairs` are there, `n` symbols: what else there has to be.
  void begin(uint32_t n) {
    for (uint32_t i = 0; i + 1 < n; i++) pairs[i] = pair(pairs[i], i);
    for (uint32_t i = n - 1; i < kSymbols; i++) pairs[i] = kNone;
    left = (1u << n) - 1;
  }

  // The pair that merges next, the leftmost of those with the lowest priority; kNone: all is merged.
  uint32_t best() const {
    uint32_t least[4] = {pairs[0], pairs[1], pairs[2], pairs[3]};
    for (uint32_t i = 4; i < kSymbols; i += 4)
      for (uint32_t k = 0; k < 4; k++) least[k] = std::min(least[k], pairs[i + k]);
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  }

  // Writes the ids that are left, and returns their number.
  uint32_t finish(int32_t* out) const {
    uint32_t n = 0;
    for (uint32_t rest = left; rest; rest &= rest - 1) out[n++] = static_cast<int32_t>(ids[__builtin_ctz(rest)]);
    return n;
  }

  static uint32_t pair(uint32_t priority, uint32_t at) { return priority == kNone ? kNone : priority << 4 | at; }
  static uint32_t place(uint32_t pair) { return pair & (kSymbols - 1); }
  static uint32_t priority(uint32_t pair) { return pair >> 4; }
};

// Merges the first `n` words, at most kWordsAtOnce. A pair of `priority` becomes the symbol merged[priority].
inline void merge_words(const PairTable& pairs, const uint32_t* merged, MergingWord* words, size_t n) {
  struct Step {
    uint32_t word, pair;  // the pair that merges
    uint32_t at[2];       // where the new pairs begin, kNone: nowhere
    PairTable::Search searches[2];
  };
  Step steps[kWordsAtOnce];
  size_t active = 0;
  for (size_t i = 0; i < n; i++) steps[active++].word = static_cast<uint32_t>(i);
  for (;;) {
    size_t some = 0;
    for (size_t i = 0; i < active; i++) {
      const uint32_t word = steps[i].word, pair = words[word].best();
      if (pair == kNone) continue;
      prefetch(&merged[MergingWord::priority(pair)]);
      steps[some].word = word;
      steps[some++].pair = pair;
    }
    if ((active = some) == 0) return;
    for (size_t i = 0; i < active; i++) {
      Step& step = steps[i];
      MergingWord& w = words[step.word];
      const uint32_t at = MergingWord::place(step.pair);
      const uint32_t above = w.left & ~uint32_t{1} << at, before = w.left & ((1u << at) - 1), after = above & (above - 1);
      w.ids[at] = merged[MergingWord::priority(step.pair)];
      w.left ^= above ^ after;
      w.pairs[__builtin_ctz(above)] = w.pairs[at] = kNone;
      step.at[0] = step.at[1] = kNone;
      if (before) {
        step.at[0] = 31 - static_cast<uint32_t>(__builtin_clz(before));
        step.searches[0] = pairs.search(w.ids[step.at[0]], w.ids[at]);
      }
      if (after) {
        step.at[1] = at;
        step.searches[1] = pairs.search(w.ids[at], w.ids[__builtin_ctz(after)]);
      }
    }
    for (size_t i = 0; i < active; i++)
      for (int k = 0; k < 2; k++)
        if (const uint32_t at = steps[i].at[k]; at != kNone) {
          const uint32_t priority = pairs.finish(steps[i].searches[k]);
          if (priority != kNone) prefetch(&merged[priority]);
          words[steps[i].word].pairs[at] = MergingWord::pair(priority, at);
        }
  }
}

}  // namespace tokenweir
