// Ids as a new numpy array, made by numpy's own functions: for a short text, anything between costs more than the encoding.
#pragma once

#include <cstdint>

#include "python/interop.h"

namespace tokenweir {

// Once, before the others.
void load_numpy();

// A copy.
nb::object id_array(const int32_t* ids, size_t n);

}  // namespace tokenweir
