// Token ids as files and callers give them.
#pragma once

#include "python/interop.h"
#include "vocabulary/token_ids.h"

namespace tokenweir {

// An id of a vocabulary that is being made; whether it is in range is for the vocabulary to say.
int64_t vocabulary_id(nb::handle value);

// Ids of tokens that Python has as bytes.
struct RankIds : TokenIds {};

}  // namespace tokenweir
