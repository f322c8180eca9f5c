// Memory of one render or one parsed template: taken in blocks, freed at once. Nothing in it has a destructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "text/failure.h"

namespace tokenweir::templates {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// Blocks that a thread has done with, for its next render: fresh memory would cost more than filling it.
class SpareBlocks {
 public:
  // A block of a size, or null.
  static std::unique_ptr<char[]> take(size_t size) {
    for (Spare& spare : spares())
      if (spare.size == size && spare.block) return std::move(spare.block);
    return nullptr;
  }
  static void keep(std::unique_ptr<char[]> block, size_t size) {
    if (kSanitized) return;  // which is to see what is used after its render
    for (Spare& spare : spares())
      if (spare.size == size && !spare.block) {
        spare.block = std::move(block);
        return;
      }
  }

 private:
  struct Spare {
    size_t size;
    std::unique_ptr<char[]> block;
  };
  // A local variable, because lld for Windows refuses the initialization of such a member in several units.
  static Spare (&spares())[5] {
    static thread_local Spare spares[5] = {{1 << 14, {}}, {1 << 14, {}}, {1 << 16, {}}, {1 << 18, {}}, {1 << 20, {}}};
    return spares;
  }
};

class Arena {
 public:
  explicit Arena(size_t limit) : limit_(limit) {}
  ~Arena() {
    for (auto& [block, size] : blocks_) SpareBlocks::keep(std::move(block), size);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

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

  // The memory that the next `take` of at most its size gives: for content whose size is not known before.
  std::pair<char*, size_t> rest() const { return {next_, static_cast<size_t>(end_ - next_)}; }

  // Bytes of all blocks.
  size_t used() const { return used_; }
  size_t limit() const { return limit_; }

 private:
  static constexpr size_t kFirstBlock = 1 << 14, kLargestBlock = 1 << 20;

  // Never inlined: `take` is small without it.
  __attribute__((noinline)) void grow(size_t size) {
    const size_t usual = blocks_.empty() ? kFirstBlock : last_ < kLargestBlock ? last_ * 4 : kLargestBlock;
    const size_t block = size > usual ? size : usual;
    if (block > limit_ - used_)
      throw Failure(joined("the template needs more than the limit of ", limit_ >> 20, " MiB of memory"));
    std::unique_ptr<char[]> memory = SpareBlocks::take(block);
    if (!memory) memory.reset(new char[block]);
    next_ = memory.get();
    end_ = next_ + block;
    blocks_.emplace_back(std::move(memory), block);
    used_ += block;
    last_ = usual;
  }

  std::vector<std::pair<std::unique_ptr<char[]>, size_t>> blocks_;
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
