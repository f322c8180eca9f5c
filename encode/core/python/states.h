// The state of an object as Python's bytes, and back.
#pragma once

#include "base/saving.h"
#include "python/interop.h"

namespace tokenweir {

// `save(to)` writes it.
template <class Save>
nb::bytes saved(Save&& save) {
  Saver to;
  save(to);
  return nb::bytes(to.bytes().data(), to.bytes().size());
}

// `load(from)` reads it, and makes an object of it.
template <class Load>
auto loaded(const nb::bytes& state, Load&& load) {
  Loader from({state.c_str(), state.size()});
  auto object = load(from);
  from.end();
  return object;
}

}  // namespace tokenweir
