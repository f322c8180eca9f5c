// A queue of numbers from which the lowest is taken, for numbers that hardly ever are lower than one taken before.
//
// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster Algorithms for the Shortest Path Problem", 1990): numbers
// lie in buckets by the highest bit in which they differ from the last one taken. A bucket is spread over lower ones
// when its turn comes, so each number moves down at most once for each of its bits, in order through memory; a binary
// heap of a million numbers misses the cache at every level. Numbers below the last one taken go to a heap of their
// own, which they share with few.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace tokenweir {

class RadixHeap {
 public:
  bool empty() const { return full_ == 0 && early_.empty(); }

  void clear() {
    for (auto& bucket : buckets_) bucket.clear();
    early_.clear();
    full_ = last_ = 0;
  }

  // `number` is below 2^63.
  void push(uint64_t number) {
    if (number >= last_) return add(number);
    early_.push_back(number);
    std::push_heap(early_.begin(), early_.end(), std::greater<>());
  }

  // Takes the lowest; there is one.
  uint64_t pop() {
    if (!early_.empty()) {
      std::pop_heap(early_.begin(), early_.end(), std::greater<>());
      const uint64_t number = early_.back();
      early_.pop_back();
      return number;
    }
    const int lowest = __builtin_ctzll(full_);
    auto& bucket = buckets_[lowest];
    if (lowest > 0) {
      last_ = *std::min_element(bucket.begin(), bucket.end());
      full_ &= ~(uint64_t{1} << lowest);
      for (const uint64_t number : bucket) add(number);  // all to lower buckets, some to the first
      bucket.clear();
    }
    buckets_[0].pop_back();
    if (buckets_[0].empty()) full_ &= ~uint64_t{1};
    return last_;
  }

  size_t capacity() const {
    size_t total = early_.capacity();
    for (const auto& bucket : buckets_) total += bucket.capacity();
    return total;
  }

 private:
  void add(uint64_t number) {
    const int bucket = number == last_ ? 0 : 64 - __builtin_clzll(number ^ last_);
    buckets_[bucket].push_back(number);
    full_ |= uint64_t{1} << bucket;
  }

  std::vector<uint64_t> buckets_[64];
  uint64_t full_ = 0;  // the buckets that are not empty, a bit each
  uint64_t last_ = 0;
  std::vector<uint64_t> early_;
};

}  // namespace tokenweir
