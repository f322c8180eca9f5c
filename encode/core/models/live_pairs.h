// Finds the live pairs of a merge list, those that ever become adjacent, and the tokens that merging can reach.
//
// Let the pair (L, R) of priority p become T, let merging make L and R of their symbols, and let each merge have a
// later priority than the merges whose results it joins, with p the latest of all. Then merging the symbols of T does
// what merging those of L and of R does, in order of priority, and joins the two at the end, unless a pair across the
// border between L and R merges earlier. The symbols at the border are known, and so is the merge that replaces each.
// If no two symbols that become adjacent there have a priority as early as the merge that separates them, merging
// reaches T, and (L, R) is its last pair.
//
// Then no other pair that makes T ever becomes adjacent: when two symbols are adjacent, no merge has crossed the ends
// of their joint text, so merging inside it went as for that text alone, and that ends with (L, R). In a list of all
// splits of each token, as ranks give, half of the pairs are dead; without them the table, whose latency dominates
// merging, has half the size.
//
// Tokens for which this cannot be proved, for example because merges are not in order, keep all their pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vocabulary/hash_table.h"
#include "vocabulary/merge_ids.h"

namespace tokenweir {

// A merge: the pair (left, right) of `priority` becomes `merged`.
struct Merge {
  uint32_t left, right, merged, priority;
};

class LivePairs {
 public:
  // Analyzes `n` merges in order of priority, which `merge(i)` returns. Of two merges of one pair the later one wins,
  // unless it is dead; then the earlier one may be in the table. Merging begins with `symbols`. `may_omit`: dead pairs
  // may be omitted from the table, because a token always consists of the same symbols, and no call forbids a merge.
  // Omitted merges are appended to `omitted`, unless it is null.
  template <class Read>
  LivePairs(size_t tokens, const std::vector<uint32_t>& symbols, size_t n, bool may_omit, Read&& merge,
            std::vector<OmittedMerge>* omitted = nullptr)
      : derivations_(tokens) {
    for (const uint32_t id : symbols) derivations_[id].time = 0;
    if (analyze(n, may_omit, merge, omitted)) return;
    derivations_.assign(tokens, {});
    if (omitted) omitted->clear();
    pairs_ = PairTable(n);
    for (size_t i = 0; i < n; i++) {
      const Merge one = merge(i);
      pairs_.insert(one.left, one.right, one.priority);
    }
  }

  // Whether merging is known to make a token from its symbols.
  bool is_reachable(uint32_t id) const { return derivations_[id].time != kNone; }

  const PairTable& pairs() const { return pairs_; }

 private:
  static constexpr size_t kAhead = 16;       // prefetch distance, in merges
  static constexpr size_t kConsidered = 16;  // merges of a token: each may take as many steps as the token has symbols

  struct Derivation {
    uint32_t left = kNone, right = kNone;
    uint32_t time = kNone;  // priority of the last merge plus one; 0 for a symbol, kNone if not known to be reachable
  };

  // Returns false if a pair is listed twice, because its priority is then not known in time.
  template <class Read>
  bool analyze(size_t n, bool may_omit, Read& merge, std::vector<OmittedMerge>* omitted) {
    size_t wholes = 1;
    for (size_t i = 1; i < n; i++) wholes += merge(i).merged != merge(i - 1).merged;
    capacity_ = may_omit ? wholes + wholes / 8 : n;  // tokens without a proof keep several pairs
    pairs_ = PairTable(capacity_);
    for (size_t begin = 0, end; begin < n; begin = end) {  // merges of one token
      Merge likely = merge(begin);                         // usually the live one
      for (end = begin; end < n && merge(end).merged == likely.merged; end++) {
        if (end + kAhead < n) prefetch_merge(merge(end + kAhead));
        const Merge one = merge(end);
        if (one.left + one.right < likely.left + likely.right) likely = one;
      }
      Derivation& token = derivations_[likely.merged];
      const auto consider = [&](const Merge& one) {
        if (token.time == kNone && is_undisturbed(one)) token = {one.left, one.right, one.priority + 1};
      };
      consider(likely);
      for (size_t i = begin; i < std::min(end, begin + kConsidered); i++) consider(merge(i));
      for (size_t i = begin; i < end; i++) {
        const Merge one = merge(i);
        const bool may_meet = token.time == kNone || (one.left == token.left && one.right == token.right);
        if (may_meet || !may_omit) {
          if (!insert(one)) return false;
        } else if (omitted) {
          omitted->push_back({one.left, one.right, one.priority});
        }
      }
    }
    return true;
  }

  // Prefetches the memory that a merge needs.
  void prefetch_merge(const Merge& merge) const {
    prefetch(&derivations_[merge.left]);
    prefetch(&derivations_[merge.right]);
    pairs_.prefetch_insert(merge.left, merge.right);
  }

  // Inserts a pair, growing the table if it is full; returns whether the pair is new.
  bool insert(const Merge& one) {
    if (size_ == capacity_) {
      PairTable larger(capacity_ *= 2);
      pairs_.for_each([&](uint32_t left, uint32_t right, uint32_t priority) { larger.insert(left, right, priority); });
      pairs_ = larger;
    }
    const bool is_new = pairs_.insert(one.left, one.right, one.priority);
    size_ += is_new;
    return is_new;
  }

  // Whether merging the symbols of both sides ends with this pair. Goes back in time: undoes the later merge of the two
  // symbols at the border; on a tie, that of the right one.
  bool is_undisturbed(const Merge& pair) const {
    const uint32_t time = pair.priority + 1;
    Derivation left = derivations_[pair.left], right = derivations_[pair.right];
    if (left.time >= time || right.time >= time) return false;
    for (uint32_t before = pair.left, after = pair.right; (left.time | right.time) > 0;) {
      const uint32_t undone = std::max(left.time, right.time);
      if (left.time > right.time)
        left = derivations_[before = left.right];
      else
        right = derivations_[after = right.left];
      if (const uint32_t priority = pairs_.find(before, after); priority != kNone && priority < undone) return false;
    }
    return true;
  }

  PairTable pairs_;
  size_t size_ = 0, capacity_ = 0;       // of the table
  std::vector<Derivation> derivations_;  // by token
};

}  // namespace tokenweir
