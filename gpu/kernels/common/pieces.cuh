// Pieces that wait to be merged, and who merges them: a thread up to kShortSymbols, a warp up to kMediumBytes, a block.
#pragma once

#include "gpu_tables/device_bpe.h"

namespace tokenweir {

constexpr uint32_t kShortSymbols = 32;
constexpr uint32_t kMediumBytes = 256;

struct Piece {
  uint32_t begin, size;
};

}  // namespace tokenweir
