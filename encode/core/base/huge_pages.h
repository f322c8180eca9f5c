// Huge pages: fewer page faults, and few TLB misses in look-up tables.
#pragma once

#include <cstddef>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tokenweir {

constexpr size_t kHugePage = size_t{1} << 21;  // bytes

// Advises the system to use huge pages for this memory. Only a performance hint.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

}  // namespace tokenweir
