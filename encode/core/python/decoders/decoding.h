// The table of token bytes with a cache of Python strings, shared by all decoding bindings.
#pragma once

#include "decoders/decode_stream.h"
#include "decoders/decoder.h"
#include "python/interop.h"

namespace tokenweir {

struct PyTokenBytes {
  TokenBytes table;
  ObjectCache strings;  // the text of tokens in mid-text; None for tokens that are bytes

  // Returns a new reference to the text of a token in mid-text, or null if the token is bytes.
  PyObject* text(size_t id) {
    PyObject* object = strings.get(
        id, [&] { return (table.is_bytes(id) ? nb::none() : text_object(table.content(id))).release().ptr(); });
    if (object != Py_None) return object;
    Py_DECREF(object);
    return nullptr;
  }

  // Calls `use(ids, n)` with the ids of an array in place, or with blocks of ids of any other sequence.
  template <class Use>
  void each(nb::handle ids, Use&& use) const {
    if (!PyList_Check(ids.ptr()) && nb::ndarray_check(ids)) {
      if (Array<int32_t> found; nb::try_cast(ids, found, false)) return use(found.data(), found.size());
      if (Array<uint32_t> found; nb::try_cast(ids, found, false)) return use(found.data(), found.size());
      if (Array<int64_t> found; nb::try_cast(ids, found, false)) return use(found.data(), found.size());
    }
    const Ids sequence(ids);
    int64_t some[256];
    for (size_t i = 0, n = sequence.size(); i < n;) {
      size_t taken = 0;
      while (taken < std::size(some) && i < n) some[taken++] = sequence[i++];
      use(some, taken);
    }
  }

  template <class Id>
  using Array = nb::ndarray<const Id, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

  // Appends the concatenated contents of `ids`, as bytes.
  void join(nb::handle ids, bool skip_special, GrowingBuffer<char>& bytes) const {
    each(ids, [&](const auto* found, size_t n) { table.join(found, n, skip_special, bytes); });
  }

  std::vector<uint32_t> checked(nb::handle ids) const {
    std::vector<uint32_t> checked;
    each(ids, [&](const auto* found, size_t n) {
      for (size_t i = 0; i < n; i++) {
        table.check(static_cast<int64_t>(found[i]));
        checked.push_back(static_cast<uint32_t>(found[i]));
      }
    });
    return checked;
  }
};

inline TextSteps text_steps(nb::handle steps) {
  std::vector<TextStep> found;
  for (nb::handle step : steps) found.push_back(nb::cast<const TextStep&>(step));
  return TextSteps(std::move(found));
}

inline Decoding decoding_of(nb::handle token, Spelling spelling, nb::handle run, nb::handle text,
                            FirstUntil first_until) {
  return {text_steps(token), spelling, text_steps(run), text_steps(text), first_until};
}

// Returns the state after the ids of a prompt; see `DecodeState::follow`.
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
