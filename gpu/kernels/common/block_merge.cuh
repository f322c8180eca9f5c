// Merging of a long list of tokens by a block: many merges in each pass, with the result of merging pairs one by one.
//
// Thread i owns the tokens [i * d, i * d + d), d = length / threads. A pass finds the lowest rank of all neighbouring
// pairs, merges the pairs that have it, and closes the gaps by a prefix sum. (You, "BlockBPE", 2025.) This equals
// merging the leftmost pair of the lowest rank as many times: overlapping pairs are taken from the left, and a pass
// ends at the first merge that creates a pair of a lower rank.
//
// Ranks are stored beside the tokens, so a pass looks up only the pairs that its merges create. Tokens are read from
// one buffer and written to another; lists of up to kNear lie in shared memory. A pass has three barriers.
#pragma once

#include "base/hash.h"
#include "common/block.cuh"

namespace tokenweir::block {

constexpr uint32_t kNear = 2048;
constexpr uint32_t kLookBack = 32;  // the most tokens of other threads' shares that a thread reads

struct Tokens {
  uint32_t *ids, *ranks;  // ranks: of the pair that each token begins; kNone for the last
};

// Two buffers for the lists, in shared memory (`near`) for those that fit, else in global memory (`far`).
struct Buffers {
  Tokens near[2], far[2];

  __device__ Tokens of(uint32_t which, uint32_t n) const { return n <= kNear ? near[which] : far[which]; }
};

// The shared words of a pass's collective operations; each has its own, which saves barriers between them.
struct Words {
  uint32_t lowest[32], last[32], kept[32];
};

// A thread's share of `n` tokens. Its size is odd, so that the threads of a warp are on different banks of shared
// memory.
struct Share {
  uint32_t begin, end;

  __device__ explicit Share(uint32_t n) {
    const uint32_t each = (n + blockDim.x - 1) / blockDim.x | 1;
    begin = min(threadIdx.x * each, n);
    end = min(begin + each, n);
  }
};

// Merges the first `n` ids of `buffers.of(0, n)`; returns the number of tokens left, which lie in the buffer `which`.
// There must be a barrier between writing the ids and the call; the call ends with one. `bpe.priority(left, right)` is
// a pair's rank, or kNone if it does not merge. All pairs of a rank merge to the same token `bpe.merged(left, right,
// rank)`, unless `bpe.is_tied(rank)`: then a pass merges the leftmost pair only.
template <class Bpe>
__device__ uint32_t merge(const Bpe& bpe, const Buffers& buffers, uint32_t n, uint32_t& which, Words& words) {
  which = 0;
  uint32_t mine = kNone;  // the lowest rank in this thread's share
  const Tokens first = buffers.of(0, n);
  const Share own(n);
  for (uint32_t i = own.begin; i < own.end; i++) {
    first.ranks[i] = i + 1 < n ? bpe.priority(first.ids[i], first.ids[i + 1]) : kNone;
    mine = min(mine, first.ranks[i]);
  }
  for (;;) {
    const uint32_t lowest = block_min(mine, words.lowest);
    if (lowest == kNone) return n;
    const bool is_tied = bpe.is_tied(lowest);
    uint32_t merged = is_tied ? kNone : bpe.merged(kNone, kNone, lowest);
    const Tokens from = buffers.of(which, n);
    const Share share(n);

    // Of a run of overlapping pairs every second one merges, beginning with the first, to which each thread counts
    // back.
    uint32_t run = 0;
    while (run < kLookBack && run < share.begin && from.ranks[share.begin - 1 - run] == lowest) run++;
    // Calls `use(i, begins, before)`: whether token i begins a pair to be merged, and whether the token before does.
    const auto each = [&](auto&& use) {
      bool before = run & 1;
      for (uint32_t i = share.begin; i < share.end; i++) {
        const bool begins = !before && from.ranks[i] == lowest;
        use(i, begins, before);
        before = begins;
      }
    };

    // The pass ends with the first merge that creates a pair of a lower rank. (An equal rank is impossible, since the
    // merged token is longer.) The left neighbour is tried as it is and, if this pass may have merged it, as merged,
    // since ending a pass early is never wrong. The pass also ends before a token if it is unknown whether it
    // ends a merged pair.
    uint32_t last = run == kLookBack ? share.begin - 2 : kNone;
    each([&](uint32_t i, bool begins, bool) {
      if (!begins || last != kNone) return;
      if (is_tied || (i > 0 && bpe.priority(from.ids[i - 1], merged) < lowest) ||
          (i > 1 && from.ranks[i - 2] == lowest && bpe.priority(merged, merged) < lowest) ||
          (i + 2 < n && bpe.priority(merged, from.ids[i + 2]) < lowest))
        last = i;
    });
    last = block_min(last, words.last);
    if (is_tied) merged = bpe.merged(from.ids[last], from.ids[last + 1], lowest);

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
        const bool next_merges = next <= last && from.ranks[next] == lowest;  // since no earlier pair overlaps it
        rank = merging || next_merges ? bpe.priority(id, next_merges ? merged : from.ids[next]) : from.ranks[i];
      }
      to.ids[at] = id;
      to.ranks[at++] = rank;
      mine = min(mine, rank);
    });
    n = place.total;
  }
}

}  // namespace tokenweir::block
