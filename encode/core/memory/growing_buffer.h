// A growing array of numbers that leaves new elements uninitialized.
//
// On Linux, a large buffer has pages of its own, which the system remaps: it grows without holding the old and the new
// memory at once, uses only the pages that were written, and is kept for the next buffer as a whole (page_pool.h).
// (`realloc` does the same, but not after a process has freed large buffers.) Buffers of some megabytes use huge pages,
// which cost fewer page faults.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/platform.h"
#include "memory/page_pool.h"

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
  ~GrowingBuffer() {
    size_t none = 0;
    resize(items_, capacity_ * sizeof(T), none);
  }

  T* data() { return items_; }
  const T* data() const { return items_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void clear() { size_ = 0; }

  // Reserves room for `n` more items. The caller writes them to the returned pointer, and adds them by `advance`.
  T* room(size_t n) {
    if (capacity_ - size_ < n) grow(n);
    return items_ + size_;
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
  static constexpr size_t kOwnPages = 1 << 20;  // bytes that are worth a system call
  static constexpr size_t kPages = 1 << 16;     // bytes, a multiple of every system's page

  void grow(size_t n) {
    const size_t more = capacity_ * sizeof(T) < kOwnPages ? capacity_ : capacity_ / 2;  // pages move without a copy
    size_t bytes = std::max<size_t>(capacity_ + more, size_ + n + 256) * sizeof(T);
    const size_t unit = bytes >= 2 * kHugePage ? kHugePage : bytes >= kOwnPages ? kPages : sizeof(T);
    bytes = (bytes + unit - 1) / unit * unit;
    items_ = static_cast<T*>(resize(items_, capacity_ * sizeof(T), bytes));
    capacity_ = bytes / sizeof(T);
  }

  // Grows memory from `from` to `to` bytes, and may move it. `from` 0 allocates; `to` 0 frees. Sets `to` to the size of
  // kept pages, if it takes such.
  static void* resize(void* items, size_t from, size_t& to) {
    const bool was_own = kHasResizablePages && from >= kOwnPages;
    if (was_own && to == 0) {
      PagePool::give_back(items, from);
      return nullptr;
    }
    if (kHasResizablePages && to >= kOwnPages) {
      void* pages = was_own ? nullptr : PagePool::take(to);
      if (!pages) pages = resize_pages(items, was_own ? from : 0, to);
      if (!pages) throw std::bad_alloc();
      if (to >= 2 * kHugePage) prefer_huge_pages(pages, to);
      if (was_own || from == 0) return pages;
      std::memcpy(pages, items, from);
      std::free(items);
      return pages;
    }
    if (to == 0) {
      std::free(items);
      return nullptr;
    }
    void* const moved = std::realloc(items, to);
    if (!moved) throw std::bad_alloc();
    return moved;
  }

  T* items_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

}  // namespace tokenweir
