// The caches of one thread in which pieces are looked up.
#pragma once

#include "encoder/long_piece_cache.h"
#include "encoder/word_cache.h"

namespace tokenweir {

struct PieceCaches {
  // A piece as the caches look it up.
  struct Entry {
    const uint8_t* p;
    size_t n;
    WordKey key;
    bool is_cacheable;   // for `long_pieces`
    uint64_t long_hash;  // valid if it is
  };

  WordCache words;
  LongPieceCache long_pieces;

  // Inserts the ids of a piece into the cache that has room for so many bytes and ids, if there is one.
  void insert(const Entry& piece, const int32_t* ids, size_t count) {
    if (piece.n <= WordKey::kMaxBytes && count > 0 && count <= WordCache::kMaxIds)
      words.insert(piece.key, piece.key.hash(), ids, count);
    else if (piece.is_cacheable)
      long_pieces.insert(piece.p, piece.n, piece.long_hash, ids, count);
  }
};

}  // namespace tokenweir
