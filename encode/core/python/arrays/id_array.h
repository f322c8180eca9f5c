// Ids as a new numpy array, made by numpy's own functions: for a short text, anything between costs more than the encoding.
// Of a long text, the array takes the memory.
#pragma once

#include <cstdint>

#include "base/id_buffer.h"
#include "python/interop.h"

namespace tokenweir {

// Once, before the others.
void load_numpy();

// What `ids` has afterwards is of no use.
nb::object id_array(IdBuffer& ids);

}  // namespace tokenweir
