// A growing array of numbers that does not clear what it will overwrite. A large one grows where it is: the system moves
// its pages, so it never needs the memory of the old and the new one at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tokenweir {

template <class T>
class GrowingBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingBuffer() = default;
  GrowingBuffer(GrowingBuffer&& other) noexcept { swap(other); }
  GrowingBuffer& operator=(GrowingBuffer&& other) noexcept {
    GrowingBuffer(std::move(other)).swap(*this);
    return *this;
  }

  T* data() { return items_.get(); }
  const T* data() const { return items_.get(); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void clear() { size_ = 0; }

  // Room for `n` more items, to be written at the returned place and then added by `advance`.
  T* room(size_t n) {
    if (capacity_ - size_ < n) grow(n);
    return items_.get() + size_;
  }
  void advance(size_t n) { size_ += n; }

  void append(const T* items, size_t n) {
    std::copy(items, items + n, room(n));
    advance(n);
  }

  void swap(GrowingBuffer& other) noexcept {
    std::swap(items_, other.items_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  struct Free {
    void operator()(T* items) const { std::free(items); }
  };

  void grow(size_t n) {
    const size_t capacity = std::max<size_t>(capacity_ * 2, size_ + n + 256);
    T* const bigger = static_cast<T*>(std::realloc(items_.get(), capacity * sizeof(T)));
    if (!bigger) throw std::bad_alloc();
    (void)items_.release();  // freed, or moved
    items_.reset(bigger);
    capacity_ = capacity;
  }

  std::unique_ptr<T[], Free> items_;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace tokenweir
