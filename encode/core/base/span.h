// A span of a text.
#pragma once

#include <cstddef>

namespace tokenweir {

// Bytes [start, end) of a text.
struct Span {
  size_t start, end;
};

}  // namespace tokenweir
