// Memory for large tables with random access: on huge pages where possible, to avoid TLB misses.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "base/platform.h"

namespace tokenweir {

// Allocates at least `bytes`, aligned to a cache line. Free it by `free_aligned`.
inline void* table_memory(size_t bytes) {
  const size_t unit = bytes >= kHugePage ? kHugePage : 64;
  const size_t rounded = (bytes + unit - 1) / unit * unit;
  void* memory = allocate_aligned(unit, rounded ? rounded : unit);
  if (!memory) throw std::bad_alloc();
  if (unit == kHugePage) prefer_huge_pages(memory, rounded);
  return memory;
}

// An allocator for a `std::vector` in such memory.
template <class T>
struct TableAllocator {
  using value_type = T;

  T* allocate(size_t n) { return static_cast<T*>(table_memory(n * sizeof(T))); }
  void deallocate(T* items, size_t) { free_aligned(items); }

  bool operator==(const TableAllocator&) const { return true; }
  bool operator!=(const TableAllocator&) const { return false; }
};

// A table's pointer and mask by value, for loops: the compiler knows that writes do not change them.
template <class Entry>
struct TableView {
  Entry* entries;
  size_t mask;

  Entry& at(size_t hash) const { return entries[hash & mask]; }
};

// A table of `size` zeroed entries of plain data; `size` is a power of two.
template <class Entry>
class TableMemory {
 public:
  TableMemory() = default;
  explicit TableMemory(size_t size)
      : entries_(static_cast<Entry*>(table_memory(size * sizeof(Entry)))), mask_(size - 1) {
    std::memset(static_cast<void*>(entries_), 0, size * sizeof(Entry));
  }
  TableMemory(TableMemory&& other) noexcept { swap(other); }
  TableMemory& operator=(TableMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TableMemory() { free_aligned(entries_); }

  size_t size() const { return entries_ ? mask_ + 1 : 0; }
  Entry& at(size_t hash) const { return entries_[hash & mask_]; }
  TableView<Entry> view() const { return {entries_, mask_}; }
  Entry* begin() const { return entries_; }
  Entry* end() const { return entries_ + size(); }

  void swap(TableMemory& other) {
    std::swap(entries_, other.entries_);
    std::swap(mask_, other.mask_);
  }

 private:
  Entry* entries_ = nullptr;
  size_t mask_ = 0;
};

}  // namespace tokenweir
