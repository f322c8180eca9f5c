// What the look-up tables of the CPU and of kernels have in common. Freestanding.
#pragma once

#include "base/utf8.h"

namespace tokenweir {

constexpr uint32_t kNone = 0xFFFFFFFF;

// Multiplication spreads the low bits upwards, so a slot is taken from the top.
TW_FN uint64_t mix(uint64_t x) { return x * 0x9E3779B97F4A7C15ull; }

// A pair of ids below 1 << 20. Tables of pairs keep it above 24 bits of priority.
TW_FN uint64_t pair_key(uint32_t left, uint32_t right) { return uint64_t{left} << 20 | right; }

}  // namespace tokenweir
