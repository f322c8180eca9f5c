// A priority queue for numbers that are rarely lower than the last one taken.
//
// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster Algorithms for the Shortest Path Problem", 1990) with digits
// of four bits. The bucket of a number is the index and value of the highest digit that differs from the current
// minimum. When its turn comes, the lowest bucket is spread over lower ones. So each number moves at most once per
// digit, sequentially through memory, where a large binary heap has a cache miss at every level. A small bucket is not
// spread: its numbers become a binary heap, which later numbers in its range join.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tokenweir {

class RadixHeap {
 public:
  bool empty() const { return used_levels_ == 0 && ready_.empty(); }

  void clear() {
    for (; used_levels_; used_levels_ &= used_levels_ - 1) {
      const int level = __builtin_ctz(used_levels_);
      for (; used_buckets_[level]; used_buckets_[level] &= used_buckets_[level] - 1)
        buckets_[level][__builtin_ctz(used_buckets_[level])].clear();
    }
    ready_.clear();
    minimum_ = ready_end_ = 0;
  }

  // `number` is below 2^63.
  void push(uint64_t number) {
    if (number >= ready_end_) return add(number);
    ready_.push_back(number);
    std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
  }

  // Removes and returns the lowest number. The queue must not be empty.
  uint64_t pop() {
    while (ready_.empty()) {
      const int level = __builtin_ctz(used_levels_), digit = __builtin_ctz(used_buckets_[level]);
      used_buckets_[level] &= ~(1u << digit);
      if (used_buckets_[level] == 0) used_levels_ &= ~(1u << level);
      auto& bucket = buckets_[level][digit];
      minimum_ = ready_end_ = bucket.front() >> kBits * level << kBits * level;
      if (level == 0 || bucket.size() <= kMinSpread) {
        ready_end_ += uint64_t{1} << kBits * level;
        ready_.swap(bucket);
        std::make_heap(ready_.begin(), ready_.end(), std::greater<>());
      } else {
        for (const uint64_t number : bucket) add(number);  // all move to lower levels
        bucket.clear();
      }
    }
    std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
    const uint64_t number = ready_.back();
    ready_.pop_back();
    return number;
  }

 private:
  static constexpr int kBits = 4, kLevels = 64 / kBits, kDigits = 1 << kBits;
  static constexpr size_t kMinSpread = 16;

  void add(uint64_t number) {
    const int level = (63 - __builtin_clzll((number ^ minimum_) | 1)) / kBits;
    const int digit = static_cast<int>(number >> kBits * level) & (kDigits - 1);
    buckets_[level][digit].push_back(number);
    used_buckets_[level] |= 1u << digit;
    used_levels_ |= 1u << level;
  }

  std::vector<uint64_t> ready_;  // a binary heap of all numbers below ready_end_
  std::vector<uint64_t> buckets_[kLevels][kDigits];
  uint32_t used_buckets_[kLevels] = {};  // the buckets that are not empty, a bit each
  uint32_t used_levels_ = 0;             // and the levels
  uint64_t minimum_ = 0, ready_end_ = 0;
};

}  // namespace tokenweir
