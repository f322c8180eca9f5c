// Merges a short piece by shifting arrays: quadratic, with a small constant. Freestanding: the CPU's encoder runs it,
// and so does each thread of a kernel.
//
// `rules` are those of merge.h. For a byte-level model they also give the initial symbols: `whole(p, i, n)` is the
// token of the character at p[i] of a piece of n bytes if merging may begin with it, or kNone; `byte(b)` is the token
// of a byte; `ascii_pair(a, b)` is the priority of the pair of two ASCII characters' tokens. Symbols and priorities are
// pointers, or whatever else has an operator[].
#pragma once

#include "base/hash.h"

namespace tokenweir {

// Merges the `n` symbols `ids`, whose pairs have the `priorities`; returns the number of remaining symbols.
template <class Rules, class Symbols>
TW_FN uint32_t merge_short(Rules& rules, Symbols ids, Symbols priorities, uint32_t n) {
  while (n > 1) {
    uint32_t best = kNone;
    for (uint32_t i = 0; i + 1 < n; i++) best = priorities[i] < best ? priorities[i] : best;
    if (best == kNone) break;
    uint32_t i = 0;
    while (priorities[i] != best) i++;
    ids[i] = rules.merged(ids[i], ids[i + 1], best);
    n--;
    for (uint32_t k = i + 1; k < n; k++) ids[k] = ids[k + 1];
    if (i + 1 < n) {
      for (uint32_t k = i + 1; k + 1 < n; k++) priorities[k] = priorities[k + 1];
      priorities[i] = rules.priority(ids[i], ids[i + 1]);
    }
    if (i > 0) priorities[i - 1] = rules.priority(ids[i - 1], ids[i]);
  }
  return n;
}

// Writes the initial symbols of a piece of `n` bytes. Returns their number, or `limit` + 1 if they are more than `limit`.
template <class Rules, class Symbols>
TW_FN uint32_t begin_symbols(Rules& rules, const uint8_t* p, uint32_t n, uint32_t limit, Symbols ids) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; count++) {
    if (count == limit) return limit + 1;
    const uint32_t whole = rules.whole(p, i, n);
    ids[count] = whole == kNone ? rules.byte(p[i]) : whole;
    i += whole == kNone ? 1 : utf8_length(p[i]);
  }
  return count;
}

// Writes the initial symbols, and the priorities of their pairs; otherwise like `begin_symbols`.
template <class Rules, class Symbols>
TW_FN uint32_t begin_merging(Rules& rules, const uint8_t* p, uint32_t n, uint32_t limit, Symbols ids,
                             Symbols priorities) {
  const uint32_t count = begin_symbols(rules, p, n, limit, ids);
  for (uint32_t i = 0; count <= limit && i + 1 < count; i++)
    priorities[i] =
        count == n && (p[i] | p[i + 1]) < 0x80 ? rules.ascii_pair(p[i], p[i + 1]) : rules.priority(ids[i], ids[i + 1]);
  return count;
}

}  // namespace tokenweir
