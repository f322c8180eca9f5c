// Makes a numpy array of ids by numpy's own functions, because any layer between costs more than encoding a short text.
// For a long text, the array takes over the memory.
#pragma once

#include "memory/id_buffer.h"
#include "python/interop.h"

namespace tokenweir {

// Loads numpy's C API. Must be called once, before `id_array`.
void load_numpy();

// Returns an array of `ids`, and leaves `ids` unspecified.
nb::object id_array(IdBuffer& ids);

}  // namespace tokenweir
