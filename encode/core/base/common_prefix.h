// The common beginning of two texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace tokenweir {

// Returns its length in bytes.
inline size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  for (constexpr size_t kStep = 256; at + kStep <= most; at += kStep)
    if (std::memcmp(a.data() + at, b.data() + at, kStep) != 0) break;
  while (at < most && a[at] == b[at]) at++;
  return at;
}

}  // namespace tokenweir
