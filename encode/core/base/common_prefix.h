// The common beginning of two texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

namespace tokenweir {

// Returns for each n the longest border of the first n bytes, a proper prefix that is their suffix too (Knuth, Morris
// and Pratt 1977).
inline std::vector<size_t> borders(std::string_view text) {
  std::vector<size_t> border(text.size() + 1);
  for (size_t i = 1, k = 0; i < text.size(); i++) {
    while (k > 0 && text[i] != text[k]) k = border[k];
    if (text[i] == text[k]) k++;
    border[i + 1] = k;
  }
  return border;
}

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
