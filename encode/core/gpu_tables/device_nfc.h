// How a character stands to Unicode's form C, as kernels read it: the rank of its combining class, or one of these.
// Freestanding.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

constexpr uint8_t kComposed = 0xFD;      // a starter that form C may have made of several
constexpr uint8_t kMayCompose = 0xFE;    // it may become one character with one before it
constexpr uint8_t kOnlyHostKnows = 0xFF;

}  // namespace tokenweir
