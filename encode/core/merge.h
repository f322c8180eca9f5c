// The merging of a piece's symbols, whatever they are.
//
// The pair of lowest priority merges first, the leftmost of equals, until no pair is left. That is O(n log n) for long
// pieces (a heap) and quadratic with a tiny constant below kShort symbols, where shifting arrays beats a heap.
//
// `rules.priority(left, right)` is the priority of a pair, kNone if it does not merge; it is asked once for each pair
// that comes to stand in the text. `rules.merged(left, right, priority)` is the symbol that a pair becomes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "errors.h"
#include "hash_table.h"
#include "model.h"

namespace tokenweir {

// As many symbols as are merged by shifting arrays.
constexpr size_t kShort = 64;

// Merges the `n` symbols `ids`, whose pairs have the `priorities`; returns how many are left.
template <class Rules>
size_t merge_short(Rules& rules, uint32_t* ids, uint32_t* priorities, size_t n) {
  while (n > 1) {
    uint32_t best = kNone;
    for (size_t i = 0; i + 1 < n; i++) best = std::min(best, priorities[i]);
    if (best == kNone) break;
    size_t i = 0;
    while (priorities[i] != best) i++;
    ids[i] = rules.merged(ids[i], ids[i + 1], best);
    n--;
    std::copy(ids + i + 2, ids + n + 1, ids + i + 1);
    if (i + 1 < n) {
      std::copy(priorities + i + 2, priorities + n, priorities + i + 1);
      priorities[i] = rules.priority(ids[i], ids[i + 1]);
    }
    if (i > 0) priorities[i - 1] = rules.priority(ids[i - 1], ids[i]);
  }
  return n;
}

// Merges the first `n` symbols of `s.ids`. Those that are left stand where they began: the first at 0, the one after i
// at s.next[i], until that is `n`. Priorities are asked from left to right at first and then, after a merge, for the pair
// that the new symbol ends and the one that it begins.
template <class Rules>
void merge_long(Rules& rules, ModelScratch& s, size_t n) {
  if (n >= kNone) throw Unsupported("a piece of 4 GiB or more without a boundary");
  const uint32_t end = static_cast<uint32_t>(n);
  s.priorities.resize(n), s.next.resize(n), s.previous.resize(n);
  s.heap.clear();
  for (uint32_t i = 0; i < end; i++) {
    s.next[i] = i + 1;
    s.previous[i] = i - 1;  // wraps to kNone for the first
    s.priorities[i] = i + 1 < end ? rules.priority(s.ids[i], s.ids[i + 1]) : kNone;
    if (s.priorities[i] != kNone) s.heap.push(uint64_t{s.priorities[i]} << 32 | i);
  }
  // An entry is stale when its symbol was swallowed or its pair has another priority by now. If that is the old one
  // again, the entry is as good as new.
  const auto renew = [&](uint32_t i) {
    const uint32_t right = s.next[i];
    s.priorities[i] = right < end ? rules.priority(s.ids[i], s.ids[right]) : kNone;
    if (s.priorities[i] != kNone) s.heap.push(uint64_t{s.priorities[i]} << 32 | i);
  };
  while (!s.heap.empty()) {
    const uint64_t lowest = s.heap.pop();
    const uint32_t best = lowest >> 32, i = static_cast<uint32_t>(lowest);
    if (s.priorities[i] != best) continue;
    const uint32_t gone = s.next[i];
    s.ids[i] = rules.merged(s.ids[i], s.ids[gone], best);
    s.priorities[gone] = kNone;
    s.next[i] = s.next[gone];
    if (s.next[i] < end) s.previous[s.next[i]] = i;
    if (s.previous[i] != kNone) renew(s.previous[i]);
    renew(i);
  }
}

}  // namespace tokenweir
