// Conversion of token ids from files and callers.
#pragma once

#include "python/interop.h"
#include "vocabulary/token_ids.h"

namespace tokenweir {

// Converts an id for a vocabulary, whose constructor checks the range.
int64_t vocabulary_id(nb::handle value);

// Ids of tokens that Python has as bytes.
struct RankIds : TokenIds {};

}  // namespace tokenweir
