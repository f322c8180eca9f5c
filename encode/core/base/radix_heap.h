// A queue of numbers from which the lowest is taken, for numbers that hardly ever are lower than one taken before.
//
// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster Algorithms for the Shortest Path Problem", 1990) with digits
// of four bits: numbers lie in buckets by the highest digit in which they differ from a bound that none is below, and by
// what it is. The lowest bucket is spread over lower ones when its turn comes, so each number moves down at most once
// for each of its digits, in order through memory; a binary heap of many numbers misses the cache at every level. A
// bucket of few is not spread: its numbers become a binary heap, and so do all that come later and are no higher.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tokenweir {

class RadixHeap {
 public:
  bool empty() const { return levels_ == 0 && near_.empty(); }

  void clear() {
    for (; levels_; levels_ &= levels_ - 1) {
      const int level = __builtin_ctz(levels_);
      for (; full_[level]; full_[level] &= full_[level] - 1) buckets_[level][__builtin_ctz(full_[level])].clear();
    }
    near_.clear();
    bound_ = near_end_ = 0;
  }

  // `number` is below 2^63.
  void push(uint64_t number) {
    if (number >= near_end_) return add(number);
    near_.push_back(number);
    std::push_heap(near_.begin(), near_.end(), std::greater<>());
  }

  // Takes the lowest; there is one.
  uint64_t pop() {
    while (near_.empty()) {
      const int level = __builtin_ctz(levels_), digit = __builtin_ctz(full_[level]);
      full_[level] &= ~(1u << digit);
      if (full_[level] == 0) levels_ &= ~(1u << level);
      auto& bucket = buckets_[level][digit];
      bound_ = near_end_ = bucket.front() >> kBits * level << kBits * level;
      if (level == 0 || bucket.size() <= kFew) {
        near_end_ += uint64_t{1} << kBits * level;
        near_.swap(bucket);
        std::make_heap(near_.begin(), near_.end(), std::greater<>());
      } else {
        for (const uint64_t number : bucket) add(number);  // all to lower levels
        bucket.clear();
      }
    }
    std::pop_heap(near_.begin(), near_.end(), std::greater<>());
    const uint64_t number = near_.back();
    near_.pop_back();
    return number;
  }

 private:
  static constexpr int kBits = 4, kLevels = 64 / kBits, kDigits = 1 << kBits;
  static constexpr size_t kFew = 16;

  void add(uint64_t number) {
    const int level = (63 - __builtin_clzll((number ^ bound_) | 1)) / kBits;
    const int digit = static_cast<int>(number >> kBits * level) & (kDigits - 1);
    buckets_[level][digit].push_back(number);
    full_[level] |= 1u << digit;
    levels_ |= 1u << level;
  }

  std::vector<uint64_t> near_;  // all below near_end_
  std::vector<uint64_t> buckets_[kLevels][kDigits];
  uint32_t full_[kLevels] = {};  // the buckets that are not empty, a bit each
  uint32_t levels_ = 0;          // and the levels
  uint64_t bound_ = 0, near_end_ = 0;
};

}  // namespace tokenweir
