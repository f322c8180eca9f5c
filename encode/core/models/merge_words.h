// Merges several words at once: pieces of at most 16 symbols, as most new pieces are.
//
// Merging is bound by memory latency: each merge looks up two pairs in tables of megabytes. So all words take each step
// together, and their cache misses overlap. The steps have no data-dependent branches, which would be mispredicted:
// symbols do not move, no search ends early, and sentinels at both ends make every merge create two new pairs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/model.h"
#include "vocabulary/hash_table.h"

namespace tokenweir {

// A word while it merges. Its symbols are at the indices from 1 on.
struct MergingWord {
  static constexpr uint32_t kSymbols = MergedWord::kMaxIds;

  uint32_t ids[kSymbols + 2];  // the symbols, between two sentinels
  uint32_t pairs[kSymbols];    // by index of the left symbol: the pair's priority, with the index in the low bits
  uint32_t left;               // a bit for each remaining symbol and each sentinel

  // The symbols and the priorities of their pairs, which the caller writes before `begin`.
  uint32_t* symbols() { return ids + 1; }
  uint32_t* priorities() { return pairs + 1; }

  // Prepares a word of `n` symbols. Each of them except the last begins a pair.
  void begin(uint32_t n) {
    ids[0] = ids[n + 1] = 0;
    left = (4u << n) - 1;
    for (uint32_t i = 0; i < kSymbols; i++) pairs[i] = i - 1 < n - 1 ? pair(pairs[i], i) : kNone;
  }

  // The pair that merges next, the leftmost one of the lowest priority. Valid only if `is_there`.
  uint32_t best() const {
    uint32_t least = kNone;
#pragma GCC unroll 1  // unrolled, it would not be vectorized
    for (const uint32_t pair : pairs) least = pair < least ? pair : least;
    return least;
  }

  // Writes the remaining ids.
  void finish(MergedWord& out) const {
    uint32_t rest = left & (left - 1);
    out.count = static_cast<uint32_t>(__builtin_popcount(rest)) - 1;
    const auto write = [&](size_t i) {
      out.ids[i] = static_cast<int32_t>(ids[__builtin_ctz(rest | 2u << kSymbols)]);
      rest &= rest - 1;
    };
    for (size_t i = 0; i < WordBatch::kMaxIds; i++) write(i);  // as many as most words have, without a branch
    for (size_t i = WordBatch::kMaxIds; i < out.count; i++) write(i);
  }

  static uint32_t pair(uint32_t priority, uint32_t place) { return priority << 4 | place; }
  static uint32_t place(uint32_t pair) { return pair & (kSymbols - 1); }
  static uint32_t priority(uint32_t pair) { return pair >> 4; }
  static bool is_there(uint32_t pair) { return pair < kNone << 4; }
};

// The pairs of the first symbols of words, whose look-ups overlap.
class PairSearches {
 public:
  explicit PairSearches(const PairTable& pairs) : pairs_(pairs) {}

  // Begins the look-ups of the pairs of a word's first `n` symbols.
  void add(MergingWord& word, uint32_t n) {
    for (uint32_t i = 0; i + 1 < n; i++) {
      priorities_[n_] = &word.priorities()[i];
      searches_[n_++] = pairs_.search(word.symbols()[i], word.symbols()[i + 1]);
    }
  }

  // Writes the priorities of all pairs.
  void finish() {
    for (size_t i = 0; i < n_; i++) pairs_.prefetch_slot(searches_[i]);
    for (size_t i = 0; i < n_; i++) *priorities_[i] = pairs_.finish(searches_[i]);
  }

 private:
  static constexpr size_t kPairs = kWordsAtOnce * MergingWord::kSymbols;

  const PairTable& pairs_;
  PairTable::Search searches_[kPairs];
  uint32_t* priorities_[kPairs];
  size_t n_ = 0;
};

// Merges the first `n` words, at most kWordsAtOnce. A pair of `priority` becomes the symbol merged[priority].
inline void merge_words(const PairTable& pairs, const uint32_t* merged, MergingWord* words, size_t n) {
  struct Step {
    MergingWord* word;
    uint32_t pair;   // the pair that merges
    uint32_t at[2];  // the indices where the two new pairs begin
    PairTable::Search searches[2];
  };
  constexpr size_t kFilterMinWords = 4;  // with fewer words, waiting for the filter costs more than a useless prefetch
  Step steps[kWordsAtOnce + 1];          // the last one is written but never read
  size_t active = 0;
  const auto advance = [&](MergingWord* word) {
    const uint32_t pair = word->best();
    steps[active].word = word;
    steps[active].pair = pair;
    active += MergingWord::is_there(pair);
  };
  const auto find = [&](const Step& step, int k) {
    const uint32_t priority = pairs.finish(step.searches[k]);
    prefetch(&merged[priority & (uint32_t{priority == kNone} - 1)]);
    step.word->pairs[step.at[k]] = MergingWord::pair(priority, step.at[k]);
  };
  for (size_t i = 0; i < n; i++) advance(&words[i]);
  while (active > 0) {
    for (size_t i = 0; i < active; i++) {
      Step& step = steps[i];
      MergingWord& w = *step.word;
      const uint32_t at = MergingWord::place(step.pair);
      const uint32_t above = w.left & ~uint32_t{1} << at, before = w.left & ((1u << at) - 1),
                     after = above & (above - 1);
      const uint32_t gone = static_cast<uint32_t>(__builtin_ctz(above));
      w.ids[at] = merged[MergingWord::priority(step.pair)];
      w.left ^= above ^ after;
      w.pairs[gone & (MergingWord::kSymbols - 1)] = kNone;
      step.at[0] = 31 - static_cast<uint32_t>(__builtin_clz(before));
      step.at[1] = at;
      step.searches[0] = pairs.search(w.ids[step.at[0]], w.ids[at], before > 1);
      step.searches[1] = pairs.search(w.ids[at], w.ids[__builtin_ctz(after)], (after & (after - 1)) != 0);
    }
    for (size_t i = 0; i < active; i++)
      for (const PairTable::Search& search : steps[i].searches)
        active < kFilterMinWords ? pairs.prefetch_slot_unfiltered(search) : pairs.prefetch_slot(search);
    const size_t merging = active;
    for (size_t i = 0; i < merging; i++)
      for (int k = 0; k < 2; k++) find(steps[i], k);
    active = 0;  // in a loop of its own, since a vector load right after the stores of `find` would stall
    for (size_t i = 0; i < merging; i++) advance(steps[i].word);
  }
}

// Encodes `n` words, at most kWordsAtOnce. `begin(part, word, searches)` writes the first symbols of a word, with the
// priorities of their pairs or their searches; it returns the number of symbols, or 0 if the word gets no ids.
template <class Begin>
void encode_words(const PairTable& pairs, const uint32_t* merged, const Word* parts, size_t n, MergedWord* out,
                  Begin&& begin) {
  MergingWord words[kWordsAtOnce];
  uint32_t symbols[kWordsAtOnce];
  PairSearches searches(pairs);
  for (size_t i = 0; i < n; i++) symbols[i] = begin(parts[i], words[i], searches);
  searches.finish();
  for (size_t i = 0; i < n; i++) words[i].begin(symbols[i] > 0 ? symbols[i] : 1);
  merge_words(pairs, merged, words, n);
  for (size_t i = 0; i < n; i++) {
    words[i].finish(out[i]);
    if (symbols[i] == 0) out[i].count = 0;
  }
}

}  // namespace tokenweir
