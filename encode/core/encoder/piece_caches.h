// The caches of one thread in which pieces are looked up.
#pragma once

#include "encoder/long_piece_cache.h"
#include "encoder/word_cache.h"

namespace tokenweir {

struct PieceCaches {
  WordCache words;
  LongPieceCache long_pieces;
};

}  // namespace tokenweir
