// A growing array of ids that does not clear what it will overwrite.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace tokenweir {

class IdBuffer {
 public:
  int32_t* data() { return ids_.get(); }
  const int32_t* data() const { return ids_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void clear() { size_ = 0; }

  // Room for `n` more ids, to be written at the returned place and then added by `advance`.
  int32_t* room(size_t n) {
    if (capacity_ - size_ < n) grow(n);
    return ids_.get() + size_;
  }
  void advance(size_t n) { size_ += n; }

  void push(uint32_t id) {
    *room(1) = static_cast<int32_t>(id);
    size_++;
  }

 private:
  void grow(size_t n) {
    capacity_ = std::max<size_t>(capacity_ * 2, size_ + n + 256);
    std::unique_ptr<int32_t[]> bigger(new int32_t[capacity_]);
    std::copy(ids_.get(), ids_.get() + size_, bigger.get());
    ids_ = std::move(bigger);
  }

  std::unique_ptr<int32_t[]> ids_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace tokenweir
