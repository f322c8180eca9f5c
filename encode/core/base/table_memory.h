// Zeroed memory for large tables that are read at random places: on huge pages where the system has them, so that few
// look-ups wait for the address of a page.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tokenweir {

// `size` entries, a power of two, of a type that is all zero at first.
template <class Entry>
class TableMemory {
 public:
  TableMemory() = default;
  explicit TableMemory(size_t size) : mask_(size - 1) {
    const size_t bytes = size * sizeof(Entry), unit = bytes >= kHugePage ? kHugePage : 64;
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    entries_ = static_cast<Entry*>(std::aligned_alloc(unit, rounded));
    if (!entries_) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (unit == kHugePage) madvise(entries_, rounded, MADV_HUGEPAGE);  // only saves time
#endif
    std::memset(static_cast<void*>(entries_), 0, rounded);
  }
  TableMemory(TableMemory&& other) noexcept { swap(other); }
  TableMemory& operator=(TableMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TableMemory() { std::free(entries_); }

  size_t size() const { return entries_ ? mask_ + 1 : 0; }
  Entry& at(size_t hash) const { return entries_[hash & mask_]; }
  Entry* begin() const { return entries_; }
  Entry* end() const { return entries_ + size(); }

  void swap(TableMemory& other) {
    std::swap(entries_, other.entries_);
    std::swap(mask_, other.mask_);
  }

 private:
  static constexpr size_t kHugePage = size_t{1} << 21;

  Entry* entries_ = nullptr;
  size_t mask_ = 0;
};

}  // namespace tokenweir
