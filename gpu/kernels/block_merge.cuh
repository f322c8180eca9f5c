// Byte-pair encoding of one string by one block, as BlockBPE (You, 2025) does it.
//
// Thread i owns the tokens [i * d, i * d + d) of the string, d = length / threads. A pass finds the lowest rank of any two
// neighbours, merges the pairs that have it, and closes the gaps by a prefix sum. What it merges is what as many steps of
// Algorithm 1 would, which merges one pair a step: pairs that overlap are taken from the left, and a pass ends at the first
// merge that creates a pair which is to go first. (bench/blockbpe_reference.py says how that algorithm is read.)
//
// Ranks stay beside the tokens, so a pass looks up only the pairs that its merges have made. Tokens are read from one
// buffer and written to another; strings of up to kNear tokens lie in shared memory. A pass has three barriers.
//
// The number of passes is that of the different ranks that are merged, about as many as the string has different words
// and their parts: a string's time grows with the square of its length until its vocabulary is exhausted.
#pragma once

#include "block.cuh"
#include "hash.h"

namespace tokenweir::block {

constexpr uint32_t kNear = 2048;
constexpr uint32_t kLookBack = 32;  // tokens in the shares of other threads that one looks at

struct Tokens {
  uint32_t *ids, *ranks;  // of each, and of the pair that it begins; kNone for the last

  __device__ Tokens from(int64_t begin) const { return {ids + begin, ranks + begin}; }
};

// Two buffers a string, in shared memory for those that are short enough.
struct Buffers {
  Tokens near[2], far[2];

  __device__ Tokens of(uint32_t which, uint32_t n) const { return n <= kNear ? near[which] : far[which]; }
};

// For the collective operations of a pass, each its own, so that none waits until the one before has been read.
struct Words {
  uint32_t lowest[32], last[32], kept[32];
};

// What a thread owns of `n` tokens. An odd number, so that threads of a warp are at different banks of shared memory.
struct Share {
  uint32_t begin, end;

  __device__ explicit Share(uint32_t n) {
    const uint32_t each = (n + blockDim.x - 1) / blockDim.x | 1;
    begin = min(threadIdx.x * each, n);
    end = min(begin + each, n);
  }
};

// `merges.rank(left, right)` is the rank of a pair, kNone if it does not merge; `merges.merged(rank)` the id it becomes.
//
// Merges the first `n` tokens of `buffers.of(0, n)`, whose ranks are set; returns how many are left, in the buffer `which`.
// Ends with all threads past a barrier.
template <class Merges>
__device__ uint32_t merge(const Merges& merges, const Buffers& buffers, uint32_t n, uint32_t& which, Words& words) {
  which = 0;
  uint32_t mine = kNone;
  const Share first_share(n);
  for (uint32_t i = first_share.begin; i < first_share.end; i++) mine = min(mine, buffers.of(0, n).ranks[i]);
  for (;;) {
    const uint32_t lowest = block_min(mine, words.lowest);
    if (lowest == kNone) return n;
    const uint32_t merged = merges.merged(lowest);
    const Tokens from = buffers.of(which, n);
    const Share share(n);

    // Of a run of pairs that overlap every second one merges, beginning with the first: each thread counts back to that.
    uint32_t run = 0;
    while (run < kLookBack && run < share.begin && from.ranks[share.begin - 1 - run] == lowest) run++;
    // Calls `use(i, begins, before)`: whether token i begins a pair to be merged, and whether the one before does.
    const auto each = [&](auto&& use) {
      bool before = run & 1;
      for (uint32_t i = share.begin; i < share.end; i++) {
        const bool begins = !before && from.ranks[i] == lowest;
        use(i, begins, before);
        before = begins;
      }
    };

    // The last merge of this pass is the first that creates a pair of a lower rank. (The same it cannot have: what it joins
    // to is longer.) The left neighbour counts as it is and, if it may have been merged by now, as merged: to end a pass
    // early is never wrong. It also ends before a token of which it is not known whether it ends a merged pair.
    uint32_t last = run == kLookBack ? share.begin - 2 : kNone;
    each([&](uint32_t i, bool begins, bool) {
      if (!begins || last != kNone) return;
      if ((i > 0 && merges.rank(from.ids[i - 1], merged) < lowest) ||
          (i > 1 && from.ranks[i - 2] == lowest && merges.rank(merged, merged) < lowest) ||
          (i + 2 < n && merges.rank(merged, from.ids[i + 2]) < lowest))
        last = i;
    });
    last = block_min(last, words.last);

    uint32_t kept = 0;
    each([&](uint32_t i, bool, bool before) { kept += !(before && i - 1 <= last); });
    const Place place = block_scan(kept, words.kept);

    which ^= 1;
    const Tokens to = buffers.of(which, place.total);
    uint32_t at = place.before;
    mine = kNone;
    each([&](uint32_t i, bool begins, bool before) {
      if (before && i - 1 <= last) return;
      const bool merging = begins && i <= last;
      const uint32_t next = i + 1 + merging, id = merging ? merged : from.ids[i];
      uint32_t rank = kNone;
      if (next < n) {
        const bool next_merges = next <= last && from.ranks[next] == lowest;  // for no pair before it overlaps
        rank = merging || next_merges ? merges.rank(id, next_merges ? merged : from.ids[next]) : from.ranks[i];
      }
      to.ids[at] = id;
      to.ranks[at++] = rank;
      mine = min(mine, rank);
    });
    n = place.total;
  }
}

}  // namespace tokenweir::block
