// A contiguous array that copies share: allocated in memory, or part of a block that was read from a file
// (table_file.h).
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "memory/table_memory.h"

namespace tokenweir {

template <class T>
class SharedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  SharedArray() = default;
  SharedArray(std::vector<T> values) : size_(values.size()) {
    const auto owner = std::make_shared<std::vector<T>>(std::move(values));
    data_ = owner->data();
    owner_ = owner;
  }
  SharedArray(T* data, size_t size, std::shared_ptr<const void> owner)
      : data_(data), size_(size), owner_(std::move(owner)) {}

  // Makes `size` equal values, in memory for tables with random access.
  SharedArray(size_t size, const T& value) : size_(size) {
    const std::shared_ptr<void> memory(table_memory(size * sizeof(T)), free_aligned);
    data_ = static_cast<T*>(memory.get());
    std::uninitialized_fill_n(data_, size, value);
    owner_ = memory;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  std::shared_ptr<const void> owner_;
};

}  // namespace tokenweir
