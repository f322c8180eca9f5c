// Search of bytes by the system's library, where that takes linear time whatever is searched for. glibc and musl promise it;
// the `memmem` of macOS does not, and Windows has none.
#pragma once

#include <cstddef>
#include <cstring>

namespace tokenweir {

// Whether `find_bytes` works.
#if defined(__linux__)
constexpr bool kHasLinearSearch = true;
#else
constexpr bool kHasLinearSearch = false;
#endif

// Returns the first place of `what` in `bytes`, or nullptr.
inline const void* find_bytes([[maybe_unused]] const void* bytes, [[maybe_unused]] size_t size,
                              [[maybe_unused]] const void* what, [[maybe_unused]] size_t what_size) {
#if defined(__linux__)
  return memmem(bytes, size, what, what_size);
#else
  return nullptr;
#endif
}

}  // namespace tokenweir
