// The property of a character with respect to Unicode's form C that kernels read: the rank of its combining class, or
// one of the constants below. Freestanding.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

constexpr uint8_t kComposed = 0xFD;       // a starter that is a composition of several characters
constexpr uint8_t kMayCompose = 0xFE;     // may compose with a character before it
constexpr uint8_t kOnlyHostKnows = 0xFF;  // left to the host

}  // namespace tokenweir
