// What one thread has seen: the caches that pieces are looked up in.
#pragma once

#include "encoder/phrase_cache.h"
#include "encoder/word_cache.h"

namespace tokenweir {

struct SeenPieces {
  WordCache words;
  PhraseCache phrases;
};

}  // namespace tokenweir
