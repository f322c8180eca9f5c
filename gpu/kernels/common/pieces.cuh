// The queues of pieces to be merged: a thread merges up to kShortBytes, or none in a small batch, a warp up to
// kMediumBytes, a block longer ones.
#pragma once

#include "gpu_tables/device_bpe.h"

namespace tokenweir {

// The longest pieces of three classes, so that the threads of a warp merge pieces of about the same length.
constexpr uint32_t kTinyBytes = 8, kSmallBytes = 16, kShortBytes = 32;
constexpr uint32_t kMediumBytes = 256;

struct Piece {
  uint32_t begin, size;
};

}  // namespace tokenweir
