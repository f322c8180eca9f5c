// Finding added tokens in a text: the longest one that begins at a place.
#pragma once

#include <stdint.h>

namespace tokenweir {

struct SpecialTokens {
  static constexpr uint32_t kOdd = 0x80000000;  // in `ids`: only the host can match it (white space, words beside it)

  const uint8_t* bytes;    // of all tokens, in the order of their bytes
  const uint32_t* starts;  // [n + 1] of each token in `bytes`
  const uint32_t* ids;     // [n]
  const uint32_t* first;   // [257]: the first token that begins with a byte, or with a later one
  uint32_t longest_length;
  uint32_t overlap;  // 1: one token can begin inside another

  __device__ bool may_begin(uint8_t byte) const { return first[byte] < first[byte + 1]; }
  __device__ uint32_t length(uint32_t token) const { return starts[token + 1] - starts[token]; }
  __device__ uint32_t id(uint32_t token) const { return ids[token] & ~kOdd; }
  __device__ bool is_odd(uint32_t token) const { return ids[token] & kOdd; }

  // The number of the longest token that `text`, of `n` bytes, begins with; 0xFFFFFFFF if none.
  __device__ uint32_t longest(const uint8_t* text, uint32_t n) const {
    uint32_t found = 0xFFFFFFFF, begin = first[text[0]], end = first[text[0] + 1];
    for (uint32_t i = 1; begin < end && i <= n; i++) {  // those in [begin, end) agree with the text in `i` bytes
      if (length(begin) == i) found = begin++;
      if (i == n) break;
      begin = from(begin, end, i, text[i]);
      end = from(begin, end, i, text[i] + 1u);
    }
    return found;
  }

 private:
  // The first token in [begin, end) whose byte at `i` is at least `byte`.
  __device__ uint32_t from(uint32_t begin, uint32_t end, uint32_t i, uint32_t byte) const {
    while (begin < end) {
      const uint32_t middle = (begin + end) / 2;
      if (bytes[starts[middle] + i] < byte)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
};

// The guarded characters of one string: no special token may cover one.
class Guards {
 public:
  // Those of the sorted offsets `guards` that are in [begin, end).
  __device__ Guards(const int64_t* guards, int64_t n, int64_t begin, int64_t end)
      : origin_(begin), begin_(guards + below(guards, n, begin)), end_(guards + below(guards, n, end)) {}

  __device__ bool any() const { return begin_ < end_; }

  // How far a token that begins at `at` may reach in a string of `n` bytes.
  __device__ uint32_t reach(uint32_t at, uint32_t n) const {
    const int64_t* next = begin_ + below(begin_, end_ - begin_, origin_ + at);
    return (next < end_ ? static_cast<uint32_t>(*next - origin_) : n) - at;
  }

 private:
  // How many of the sorted `guards` are less than `offset`.
  __device__ static int64_t below(const int64_t* guards, int64_t n, int64_t offset) {
    int64_t begin = 0;
    while (begin < n) {
      const int64_t middle = (begin + n) / 2;
      if (guards[middle] < offset)
        begin = middle + 1;
      else
        n = middle;
    }
    return begin;
  }

  int64_t origin_;
  const int64_t *begin_, *end_;
};

}  // namespace tokenweir
