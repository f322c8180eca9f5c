// Memory and process calls that differ between operating systems; no other header of the core asks for the system.
//
// Linux: huge pages by advice, and mappings that grow in place. macOS has neither: its pages are 16 KiB on arm64, and
// its `realloc` moves large blocks by remapping them. Windows has neither, nor a fork; its aligned blocks need a free of
// their own. The other POSIX systems are treated as macOS.
#pragma once

#include <cstddef>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(_WIN32)
#include <malloc.h>
#else
#include <pthread.h>
#endif

namespace tokenweir {

constexpr size_t kHugePage = size_t{1} << 21;  // bytes

// Whether `resize_pages` works; elsewhere large buffers are resized by `realloc`. ThreadSanitizer does not see that pages move.
#if defined(__linux__) && !defined(__SANITIZE_THREAD__)
constexpr bool kHasResizablePages = true;
#else
constexpr bool kHasResizablePages = false;
#endif

// Advises the system to use huge pages for this memory: fewer page faults, and few TLB misses in look-up tables.
inline void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
}

// Allocates `bytes`, a multiple of `alignment`, which is a power of two and at least a pointer's size. Returns nullptr
// without memory. Free it by `free_aligned`.
inline void* allocate_aligned(size_t alignment, size_t bytes) {
#if defined(_WIN32)
  return _aligned_malloc(bytes, alignment);
#else
  void* memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
#endif
}

inline void free_aligned(void* memory) {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

// Resizes a mapping of whole pages from `from` to `to` bytes, and may move it. `from` 0 makes one; `to` 0 unmaps it and
// returns nullptr. Returns nullptr without memory, too, and leaves the old mapping.
inline void* resize_pages([[maybe_unused]] void* pages, [[maybe_unused]] size_t from, [[maybe_unused]] size_t to) {
#if defined(__linux__)
  if (to == 0) {
    munmap(pages, from);
    return nullptr;
  }
  void* const resized = from ? mremap(pages, from, to, MREMAP_MAYMOVE)
                             : mmap(nullptr, to, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return resized == MAP_FAILED ? nullptr : resized;
#else
  return nullptr;
#endif
}

// Lets the system take back the memory of whole pages until they are written again; what they hold is lost or not.
inline void lend_pages([[maybe_unused]] void* pages, [[maybe_unused]] size_t bytes) {
#if defined(__linux__) && defined(MADV_FREE)
  madvise(pages, bytes, MADV_FREE);
#endif
}

// Registers a function that the child of each fork calls before anything else. Returns 0 on success.
inline int call_in_forked_child([[maybe_unused]] void (*function)()) {
#if defined(_WIN32)
  return 0;  // no forks
#else
  return pthread_atfork(nullptr, nullptr, function);
#endif
}

}  // namespace tokenweir
