// BlockBPE (You, 2025): byte-pair encoding of a whole string by one block (block_merge.cuh), without a pattern.
#include "block_merge.cuh"
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

constexpr uint32_t kWhole = 0x80000000;  // set in the id of a special token: it merges with nothing

struct Merges {
  const Tables& tables;
  bool guarded;

  __device__ uint32_t rank(uint32_t left, uint32_t right) const {
    return (left | right) & kWhole ? kNone : tables.pairs.find(left, right, guarded);
  }
  __device__ uint32_t merged(uint32_t rank) const { return tables.pairs.merged(rank); }
};

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
