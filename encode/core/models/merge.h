// The merge loops, for symbols that are bytes or characters.
//
// The pair of lowest priority merges first, the leftmost of equals, until no pair is left. Up to kShort symbols are
// merged by shifting arrays (merge_short.h). More symbols use a heap, and long pieces a heap per window: time linear in
// the piece, in memory that stays in the cache.
//
// `rules.priority(left, right)` is the priority of a pair, kNone if it does not merge; it is called once for each pair
// that becomes adjacent. `rules.merged(left, right, priority)` is the symbol that a pair becomes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/errors.h"
#include "models/merge_short.h"
#include "models/model.h"

namespace tokenweir {

// The most symbols that are merged by shifting arrays.
constexpr size_t kShort = 64;

// Merges the `n` symbols `ids`. The remaining symbols are a linked list: the first is at 0, the one after i at
// w.next[i], until that is `n`; w.ids[i] is the symbol.
template <class Rules>
void merge_at_once(Rules& rules, const uint32_t* ids, uint32_t n, MergeWindow& w) {
  w.ids.assign(ids, ids + n);
  w.priorities.resize(n);
  w.next.resize(n);
  w.previous.resize(n);
  w.heap.clear();
  for (uint32_t i = 0; i < n; i++) {
    w.next[i] = i + 1;
    w.previous[i] = i - 1;  // wraps to kNone for the first
    w.priorities[i] = i + 1 < n ? rules.priority(w.ids[i], w.ids[i + 1]) : kNone;
    if (w.priorities[i] != kNone) w.heap.push(uint64_t{w.priorities[i]} << 32 | i);
  }
  // A heap entry is stale if its symbol was merged away, or its pair has another priority by now. If the pair has the
  // old priority again, the entry is valid.
  const auto renew = [&](uint32_t i) {
    const uint32_t right = w.next[i];
    w.priorities[i] = right < n ? rules.priority(w.ids[i], w.ids[right]) : kNone;
    if (w.priorities[i] != kNone) w.heap.push(uint64_t{w.priorities[i]} << 32 | i);
  };
  while (!w.heap.empty()) {
    const uint64_t lowest = w.heap.pop();
    const uint32_t best = lowest >> 32, i = static_cast<uint32_t>(lowest);
    if (w.priorities[i] != best) continue;
    const uint32_t gone = w.next[i];
    w.ids[i] = rules.merged(w.ids[i], w.ids[gone], best);
    w.priorities[gone] = kNone;
    w.next[i] = w.next[gone];
    if (w.next[i] < n) w.previous[w.next[i]] = i;
    if (w.previous[i] != kNone) renew(w.previous[i]);
    renew(i);
  }
}

constexpr uint32_t kWindow = 4096, kOverlap = 512;

// Merges the first `n` symbols of `s.ids` in overlapping windows; false if two windows have no resulting symbol in
// common.
//
// A sequence of symbols is the result of merging its text if each two adjacent symbols are the result of merging
// theirs: up to the first merge across a border, both sides merge as they would alone, so the two symbols at the border
// would merge alone too. So two windows join at a symbol that both have: each two neighbours on its left come from one
// window, those on its right from the other.
//
// A window with the same symbols as the one before it, as in a run of one character, reuses that result.
template <class Rules>
bool merge_by_windows(Rules& rules, ModelScratch& s, uint32_t n) {
  const uint32_t* const ids = s.ids.data();
  uint32_t done = 0, done_size = 0;         // the last window that was merged
  for (uint32_t begin = 0, shared = 0;;) {  // s.merged[shared] begins at `begin`
    const uint32_t size = std::min(kWindow, n - begin);
    if (size != done_size || !std::equal(ids + begin, ids + begin + size, ids + done))
      merge_at_once(rules, ids + begin, size, s.window);
    done = begin;
    done_size = size;
    uint32_t i = 0, start = begin;  // the next symbol in this window, and in the one before
    while (shared < s.merged.size() && i < size) {
      const uint32_t here = begin + i, here_end = begin + s.window.next[i], there_end = s.merged[shared].end;
      if (here == start && here_end == there_end) break;
      if (here_end <= there_end) i = s.window.next[i];
      if (there_end <= here_end) start = there_end, shared++;
    }
    if (begin > 0 && shared == s.merged.size()) return false;
    s.merged.resize(shared);
    uint32_t next_begin = begin;
    for (; i < size; i = s.window.next[i]) {
      if (i <= kWindow - kOverlap) next_begin = begin + i, shared = static_cast<uint32_t>(s.merged.size());
      s.merged.push_back({s.window.ids[i], begin + s.window.next[i]});
    }
    if (begin + size == n) return true;
    if (next_begin == begin) return false;
    begin = next_begin;
  }
}

// Merges the first `n` symbols of `s.ids` to `s.merged`.
template <class Rules>
void merge_long(Rules& rules, ModelScratch& s, size_t n) {
  if (n >= kNone) throw Unsupported("a piece of 4 GiB or more without a boundary");
  const uint32_t end = static_cast<uint32_t>(n);
  s.merged.clear();
  if (merge_by_windows(rules, s, end)) return;
  s.merged.clear();
  merge_at_once(rules, s.ids.data(), end, s.window);
  for (uint32_t i = 0; i < end; i = s.window.next[i]) s.merged.push_back({s.window.ids[i], s.window.next[i]});
}

}  // namespace tokenweir
