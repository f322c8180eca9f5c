// The table of token bytes with Python's strings beside it, which every binding that decodes shares.
#pragma once

#include "decoders/decode_stream.h"
#include "decoders/decoder.h"
#include "python/interop.h"

namespace tokenweir {

struct PyTokenBytes {
  TokenBytes table;
  ObjectCache strings;  // of tokens that are text; None for the others

  // The text of a token in mid-text, or null if it is bytes; a new reference.
  PyObject* text(size_t id) {
    PyObject* object = strings.get(id, [&] {
      return (table.is_bytes(id) ? nb::none() : text_object(table.content(id))).release().ptr();
    });
    if (object != Py_None) return object;
    Py_DECREF(object);
    return nullptr;
  }

  std::vector<uint32_t> checked(nb::handle ids) const {
    const Ids sequence(ids);
    std::vector<uint32_t> checked(sequence.size());
    for (size_t i = 0; i < checked.size(); i++) {
      const int64_t id = sequence[i];
      table.check(id);
      checked[i] = static_cast<uint32_t>(id);
    }
    return checked;
  }
};

// A state as if the ids of a prompt had been taken; see `DecodeState::follow`.
inline DecodeState after_prompt(const TokenBytes& table, DecodeState state, nb::handle prompt_ids) {
  const Ids ids(prompt_ids);
  state.follow(ids.size(), [&](size_t i) {
    const int64_t id = ids[i];
    table.check(id);
    return static_cast<size_t>(id);
  });
  return state;
}

}  // namespace tokenweir
