// The queue of pieces to be merged: a thread merges up to kShortSymbols, a warp up to kMediumBytes, a block longer
// ones.
#pragma once

#include "gpu_tables/device_bpe.h"

namespace tokenweir {

constexpr uint32_t kShortSymbols = 32;
constexpr uint32_t kMediumBytes = 256;

struct Piece {
  uint32_t begin, size;
};

}  // namespace tokenweir
