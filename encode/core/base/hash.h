// Hashes that the look-up tables of the CPU and of kernels share. Freestanding.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

constexpr uint32_t kNone = 0xFFFFFFFF;

// Multiplicative hash. The top bits are the best mixed, so tables use those.
TW_FN uint64_t mix(uint64_t x) { return x * 0x9E3779B97F4A7C15ull; }

// The key of a pair of ids below 1 << 20. Pair tables store it above 24 bits of priority.
TW_FN uint64_t pair_key(uint32_t left, uint32_t right) { return uint64_t{left} << 20 | right; }

}  // namespace tokenweir
