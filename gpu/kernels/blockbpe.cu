// BlockBPE (You, 2025): byte-pair encoding of a whole string by one block, without a pattern.
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
#include "block.cuh"
#include "pair_table.cuh"
#include "special_tokens.cuh"

namespace tokenweir::block {

struct Tables {
  PairLookUp pairs;
  const uint32_t* byte_ids;  // [256]
  SpecialTokens special;
};

// Why a string is left out.
enum Refusal : uint8_t { kEncoded = 0, kTooLong = 1, kSpecialToken = 2 };

constexpr uint32_t kNear = 2048;
constexpr uint32_t kLookBack = 32;  // tokens in the shares of other threads that one looks at
constexpr uint32_t kWhole = 0x80000000;  // set in the id of a special token: it merges with nothing

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

struct Merges {
  const Tables& tables;
  bool guarded;

  __device__ uint32_t rank(uint32_t left, uint32_t right) const {
    return (left | right) & kWhole ? kNone : tables.pairs.find(left, right, guarded);
  }
};

// Merges the first `n` tokens of `buffers.of(0, n)`, whose ranks are set; returns how many are left, in the buffer `which`.
// Ends with all threads past a barrier.
__device__ uint32_t merge(const Merges& merges, const Buffers& buffers, uint32_t n, uint32_t& which, Words& words) {
  which = 0;
  uint32_t mine = kNone;
  const Share first_share(n);
  for (uint32_t i = first_share.begin; i < first_share.end; i++) mine = min(mine, buffers.of(0, n).ranks[i]);
  for (;;) {
    const uint32_t lowest = block_min(mine, words.lowest);
    if (lowest == kNone) return n;
    const uint32_t merged = merges.tables.pairs.merged(lowest);
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

// Special tokens and the bytes between them as the first tokens, in buffers.of(0, n); returns their number n, or kNone if a
// token is found that only the host can match. `marks` is buffers.of(1, n_bytes).ids.
__device__ uint32_t split(const Tables& tables, const uint8_t* text, uint32_t n_bytes, const Guards& guards,
                          bool parse_special, const Buffers& buffers, Words& words) {
  uint32_t* const marks = buffers.of(1, n_bytes).ids;
  const SpecialTokens& special = tables.special;
  const Share share(n_bytes);
  bool found = false, odd = false;
  for (uint32_t i = share.begin; parse_special && i < share.end; i++) {
    marks[i] = special.may_begin(text[i]) ? special.longest(text + i, guards.reach(i, n_bytes)) : kNone;
    if (marks[i] == kNone) continue;
    found = true;
    odd |= special.is_odd(marks[i]);
  }
  if (__syncthreads_or(odd)) return kNone;
  if (!__syncthreads_or(found)) {
    const Tokens to = buffers.of(0, n_bytes);
    for (uint32_t i = share.begin; i < share.end; i++) to.ids[i] = tables.byte_ids[text[i]];
    return n_bytes;
  }
  if (special.overlap) {  // the leftmost counts; seldom enough for one thread
    for (uint32_t i = 0, end = 0; threadIdx.x == 0 && i < n_bytes; i++)
      if (i < end)
        marks[i] = kNone;
      else if (marks[i] != kNone)
        end = i + special.length(marks[i]);
    __syncthreads();
  }
  uint32_t covered = 0;  // where the last one so far ends
  for (uint32_t i = share.begin; i > 0 && share.begin - i < special.longest_length && covered == 0;)
    if (marks[--i] != kNone) covered = i + special.length(marks[i]);
  // Calls `use(i)` for each token, which begins there.
  const auto each = [&](auto&& use) {
    uint32_t end = covered;
    for (uint32_t i = share.begin; i < share.end; i++) {
      if (i < end) continue;
      if (marks[i] != kNone) end = i + special.length(marks[i]);
      use(i);
    }
  };
  uint32_t kept = 0;
  each([&](uint32_t) { kept++; });
  const Place place = block_scan(kept, words.kept);
  uint32_t* to = buffers.of(0, place.total).ids + place.before;
  each([&](uint32_t i) { *to++ = marks[i] == kNone ? tables.byte_ids[text[i]] : special.id(marks[i]) | kWhole; });
  return place.total;
}

}  // namespace tokenweir::block

// Encodes the string of each block; its ids go to far0_ids from where its bytes are in the text.
//
// text: all strings; offsets[n + 1]: where each begins. guards[n_guards]: sorted offsets of characters that no special token
// may cover; a string that has some yields no control token, nor does any without `parse_special`. far*: scratch for as
// many tokens as there are bytes. counts[n]: ids of each; refusals[n]: a `Refusal`, and then no ids.
extern "C" __global__ void __launch_bounds__(1024, 1)
    blockbpe(const tokenweir::block::Tables* tables, const uint8_t* text, const int64_t* offsets, const int64_t* guards,
             int64_t n_guards, int32_t parse_special, uint32_t longest, uint32_t* far0_ids, uint32_t* far0_ranks,
             uint32_t* far1_ids, uint32_t* far1_ranks, uint32_t* counts, uint8_t* refusals) {
  using namespace tokenweir;
  using namespace tokenweir::block;
  __shared__ uint32_t near[4][kNear];
  __shared__ Words words;
  const int64_t begin = offsets[blockIdx.x], size = offsets[blockIdx.x + 1] - begin;
  const Guards of_string(guards, n_guards, begin, begin + size);
  const Buffers buffers{{{near[0], near[1]}, {near[2], near[3]}},
                        {Tokens{far0_ids, far0_ranks}.from(begin), Tokens{far1_ids, far1_ranks}.from(begin)}};
  const Merges merges{*tables, !parse_special || of_string.any()};
  uint32_t n = kNone, which = 0;
  if (size <= longest)
    n = split(*tables, text + begin, static_cast<uint32_t>(size), of_string, parse_special, buffers, words);
  if (n == kNone) {
    if (threadIdx.x == 0) counts[blockIdx.x] = 0, refusals[blockIdx.x] = size > longest ? kTooLong : kSpecialToken;
    return;
  }
  __syncthreads();
  const Tokens first = buffers.of(0, n);
  const Share share(n);
  for (uint32_t i = share.begin; i < share.end; i++)
    first.ranks[i] = i + 1 < n ? merges.rank(first.ids[i], first.ids[i + 1]) : kNone;
  n = merge(merges, buffers, n, which, words);
  const uint32_t* ids = buffers.of(which, n).ids;
  for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) far0_ids[begin + i] = ids[i] & ~kWhole;
  if (threadIdx.x == 0) counts[blockIdx.x] = n, refusals[blockIdx.x] = kEncoded;
}

// offsets[i]: the sum of the counts before i, up to offsets[n]. One block.
extern "C" __global__ void __launch_bounds__(1024) blockbpe_offsets(const uint32_t* counts, int64_t n, int64_t* offsets) {
  __shared__ uint32_t words[32];
  const int64_t each = (n + blockDim.x - 1) / blockDim.x;
  const int64_t begin = min(threadIdx.x * each, n), end = min(begin + each, n);
  uint32_t sum = 0;
  for (int64_t i = begin; i < end; i++) sum += counts[i];
  const tokenweir::Place place = tokenweir::block_scan(sum, words);
  int64_t at = place.before;
  for (int64_t i = begin; i < end; i++) {
    offsets[i] = at;
    at += counts[i];
  }
  if (threadIdx.x == 0) offsets[n] = place.total;
}

// The ids of the string of each block, from where its bytes are to where its ids are to stand.
extern "C" __global__ void blockbpe_gather(const uint32_t* scattered, const int64_t* from, const int64_t* to, int32_t* ids) {
  const int64_t n = to[blockIdx.x + 1] - to[blockIdx.x];
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
    ids[to[blockIdx.x] + i] = static_cast<int32_t>(scattered[from[blockIdx.x] + i]);
}
