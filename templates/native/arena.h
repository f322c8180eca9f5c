// Memory of one render or one parsed template: taken in blocks, freed at once. Nothing in it has a destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "failure.h"

namespace tokenweir::templates {

class Arena {
 public:
  explicit Arena(size_t limit) : limit_(limit) {}

  // Uninitialised memory for `size` bytes, aligned for any type here.
  void* take(size_t size) {
    size = (size + 15) & ~size_t{15};
    if (size > static_cast<size_t>(end_ - next_)) grow(size);
    char* const taken = next_;
    next_ += size;
    return taken;
  }

  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (take(sizeof(T))) T(std::forward<Args>(args)...);
  }

  template <class T>
  T* array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    return static_cast<T*>(take(count * sizeof(T)));
  }

  // Bytes of all blocks.
  size_t used() const { return used_; }
  size_t limit() const { return limit_; }

 private:
  static constexpr size_t kFirstBlock = 1 << 14, kLargestBlock = 1 << 20;

  void grow(size_t size) {
    const size_t usual = blocks_.empty() ? kFirstBlock : last_ < kLargestBlock ? last_ * 4 : kLargestBlock;
    const size_t block = size > usual ? size : usual;
    if (block > limit_ - used_)
      throw Failure("the template needs more than the limit of " + std::to_string(limit_ >> 20) + " MiB of memory");
    blocks_.emplace_back(new char[block]);
    used_ += block;
    last_ = usual;
    next_ = blocks_.back().get();
    end_ = next_ + block;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  char* end_ = nullptr;
  size_t used_ = 0, last_ = kFirstBlock, limit_;
};

// A sequence in an arena.
template <class T>
struct Slice {
  T* data = nullptr;
  uint32_t size = 0;

  T* begin() const { return data; }
  T* end() const { return data + size; }
  bool empty() const { return size == 0; }
  T& operator[](size_t i) const { return data[i]; }

  static Slice copy(Arena& arena, const std::vector<T>& items) {
    Slice slice{arena.array<T>(items.size()), static_cast<uint32_t>(items.size())};
    for (size_t i = 0; i < items.size(); i++) new (slice.data + i) T(items[i]);
    return slice;
  }
};

}  // namespace tokenweir::templates
