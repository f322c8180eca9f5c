// A few ids among many: the end tokens of an answer, the control tokens of a prompt.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokenweir {

class IdSet {
 public:
  explicit IdSet(std::vector<int64_t> ids) : ids_(std::move(ids)) {
    std::sort(ids_.begin(), ids_.end());
    for (const int64_t id : ids_) filter_[slot(id)] |= bit(id);
  }

  // Most ids that are not in the set fall through the filter, which 4,096 bits of them all share.
  bool contains(int64_t id) const {
    return (filter_[slot(id)] & bit(id)) != 0 && std::binary_search(ids_.begin(), ids_.end(), id);
  }

 private:
  static size_t slot(int64_t id) { return static_cast<size_t>(id) / 64 % 64; }
  static uint64_t bit(int64_t id) { return uint64_t{1} << (static_cast<size_t>(id) % 64); }

  std::vector<int64_t> ids_;
  std::array<uint64_t, 64> filter_{};
};

}  // namespace tokenweir
