// Which pairs of a list of merges ever stand side by side, and which tokens merging makes.
//
// Let the pair (L, R) of priority p become T, let merging make L and R of their symbols, and let each of their merges have a
// higher priority than those whose results it joins, and p a higher one still. Then merging the symbols of T does what merging
// those of L and of R does, in order of priority, and joins the two at last, unless a pair across the border between them
// comes earlier. The symbols that stand at the border are known, and so is which merge takes each away. If no two that meet
// there have a priority as low as the merge that parts them, merging makes T, and (L, R) is its last pair.
//
// Then no other pair of T is ever met. Where two symbols stand side by side, no merge has crossed the ends of the text that
// they have together, so that inside it merging went as it does for that text alone, and that ends with (L, R). A list that
// has every split of a token into two, as one made of ranks has, is half of such pairs; without them the table that merging
// waits for has half of the size.
//
// What cannot be told so (merges that are not in order, say) keeps all its pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vocabulary/hash_table.h"
#include "vocabulary/merge_ids.h"

namespace tokenweir {

// The pair (left, right) of `priority` becomes `merged`.
struct Merge {
  uint32_t left, right, merged, priority;
};

class LivePairs {
 public:
  // Of a list of `n` merges in order of priority, of which `merge(i)` is one; the later one of two with the same pair holds,
  // unless it is never met, when the earlier one may be in the table.
  // Merging begins with `symbols`. `may_omit`: the table need not have pairs that are never met, since a token is made of the
  // same symbols wherever it is made, and no call forbids a merge. What the table lacks is added to `omitted`, if it is given.
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

  // Whether merging is known to make a token of its symbols.
  bool is_reachable(uint32_t id) const { return derivations_[id].time != kNone; }

  const PairTable& pairs() const { return pairs_; }

 private:
  static constexpr size_t kAhead = 16;       // so many merges are asked for before they are looked at
  static constexpr size_t kConsidered = 16;  // of a token: each may take as many steps as it has symbols

  struct Derivation {
    uint32_t left = kNone, right = kNone;
    uint32_t time = kNone;  // the priority of the last merge plus one; 0: a symbol, kNone: not known to be made
  };

  // False: a pair is there twice, so that its priority is not known in time.
  template <class Read>
  bool analyze(size_t n, bool may_omit, Read& merge, std::vector<OmittedMerge>* omitted) {
    size_t wholes = 1;
    for (size_t i = 1; i < n; i++) wholes += merge(i).merged != merge(i - 1).merged;
    capacity_ = may_omit ? wholes + wholes / 8 : n;  // tokens of which nothing can be told have several pairs
    pairs_ = PairTable(capacity_);
    for (size_t begin = 0, end; begin < n; begin = end) {  // merges of one token
      Merge likely = merge(begin);                         // the last one nine times in ten
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

  // Asks for the memory that a merge needs.
  void prefetch_merge(const Merge& merge) const {
    prefetch(&derivations_[merge.left]);
    prefetch(&derivations_[merge.right]);
    pairs_.prefetch_insert(merge.left, merge.right);
  }

  // Makes room if need be; returns whether the pair was not there yet.
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

  // Whether merging the symbols of both sides ends with that pair. Goes back in time: of the two symbols at the border, the one
  // that was made last is taken apart, which is the right one if merging made them at once.
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
  size_t size_ = 0, capacity_ = 0;  // of the table
  std::vector<Derivation> derivations_;          // by token
};

}  // namespace tokenweir
