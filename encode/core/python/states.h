// Conversions between the state of an object and Python's bytes.
#pragma once

#include "base/saving.h"
#include "python/interop.h"

namespace tokenweir {

// Returns the state that `save(to)` writes.
template <class Save>
nb::bytes saved(Save&& save) {
  Saver to;
  save(to);
  return nb::bytes(to.bytes().data(), to.bytes().size());
}

// Returns the object that `load(from)` reads from a state.
template <class Load>
auto loaded(const nb::bytes& state, Load&& load) {
  Loader from({state.c_str(), state.size()});
  auto object = load(from);
  from.end();
  return object;
}

}  // namespace tokenweir
