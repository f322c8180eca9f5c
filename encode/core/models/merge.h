// The merge loops: they merge the symbols of a piece, be these bytes or characters.
//
// The pair of lowest priority merges first, the leftmost of equals, until no pair is left. Up to kShort symbols that is
// done by shifting arrays (merge_short.h). More take a heap, and long pieces a heap for one window after
// the other: linear in the piece, in memory that stays near.
//
// `rules.priority(left, right)` is the priority of a pair, kNone if it does not merge; it is asked once for each pair
// that comes to stand in the text. `rules.merged(left, right, priority)` is the symbol that a pair becomes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/errors.h"
#include "models/merge_short.h"
#include "models/model.h"

namespace tokenweir {

// As many symbols as are merged by shifting arrays.
constexpr size_t kShort = 64;

// Merges the `n` symbols `ids`. Those that are left stand where they began: the first at 0, the one after i at w.next[i],
// until that is `n`; w.ids[i] is what each became. Priorities are asked from left to right at first and then, after a
// merge, for the pair that the new symbol ends and the one that it begins.
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
  // An entry is stale when its symbol was swallowed or its pair has another priority by now. If that is the old one
  // again, the entry is as good as new.
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

// Merges the first `n` symbols of `s.ids` in windows that overlap; false if two of them have no symbol in common.
//
// Symbols left side by side are what merging the text leaves if each two neighbours are, apart from the rest: up to the
// first merge across an edge, what is left and right of it goes as it would alone, so the symbols at the edge would be
// merged as well where only they stand. So two windows with a symbol in common fit together at it: left of it there are
// neighbours of the one, right of it of the other.
//
// A window of the same symbols as the one before it, as in a run of one character, has its result already.
template <class Rules>
bool merge_by_windows(Rules& rules, ModelScratch& s, uint32_t n) {
  const uint32_t* const ids = s.ids.data();
  uint32_t done = 0, done_size = 0;  // the window that was merged last
  for (uint32_t begin = 0, shared = 0;;) {  // s.merged[shared] begins at `begin`
    const uint32_t size = std::min(kWindow, n - begin);
    if (size != done_size || !std::equal(ids + begin, ids + begin + size, ids + done))
      merge_at_once(rules, ids + begin, size, s.window);
    done = begin;
    done_size = size;
    uint32_t i = 0, start = begin;  // of the next one in this window and in the one before
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

// Merges the first `n` symbols of `s.ids` to `s.merged`. With `at_once`, pairs are asked for in the order told above all
// over the piece, not only in each window.
template <class Rules>
void merge_long(Rules& rules, ModelScratch& s, size_t n, bool at_once) {
  if (n >= kNone) throw Unsupported("a piece of 4 GiB or more without a boundary");
  const uint32_t end = static_cast<uint32_t>(n);
  s.merged.clear();
  if (!at_once && merge_by_windows(rules, s, end)) return;
  s.merged.clear();
  merge_at_once(rules, s.ids.data(), end, s.window);
  for (uint32_t i = 0; i < end; i = s.window.next[i]) s.merged.push_back({s.window.ids[i], s.window.next[i]});
}

}  // namespace tokenweir
