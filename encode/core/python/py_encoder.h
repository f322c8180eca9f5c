// The encoder that Python holds, and one call of it.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "encoder/encoder.h"
#include "python/arrays/id_array.h"
#include "python/interop.h"

namespace tokenweir {

struct PyEncoder {
  using Affix = std::vector<int32_t>;  // ids that go before or after a text

  Encoder encoder;
  ObjectCache ints;
  Affix prefix = {}, suffix = {};  // of every text, unless an option says otherwise

  // One call: a text and its options, with a workspace from the pool.
  struct Call {
    const PyEncoder& self;
    std::string_view text;
    EncodeOptions options;
    std::unique_ptr<Workspace> w;

    Call(const PyEncoder& self, std::string_view text, EncodeOptions options)
        : self(self), text(text), options(std::move(options)), w(self.encoder.pool().take()) {
      w->clear();
    }
    Call(const Call&) = delete;
    ~Call() { self.encoder.pool().give_back(std::move(w)); }

    template <bool Spans = false>
    void run(const Affix& prefix = {}, const Affix& suffix = {}) {
      for (const int32_t id : prefix) w->ids.push(static_cast<uint32_t>(id));
      unlocked(text.size(), [&] { self.encoder.encode<Spans>(text, options, *w); });
      for (const int32_t id : suffix) w->ids.push(static_cast<uint32_t>(id));
    }
  };

  // Makes a list of cached int objects. Prefetches them some ids ahead, because they are scattered in memory.
  nb::list to_list(const IdBuffer& ids) {
    constexpr size_t kAhead = 16;
    const size_t n = ids.size();
    const int32_t* const data = ids.data();
    nb::list list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(n)));
    if (!list.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < n; i++) {
      if (i + kAhead < n) ints.prefetch(static_cast<size_t>(data[i + kAhead]));
      PyObject* object = ints.get(static_cast<size_t>(data[i]), [&] { return PyLong_FromLong(data[i]); });
#ifdef Py_LIMITED_API
      PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), object);
#else
      PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), object);
#endif
    }
    return list;
  }
};

}  // namespace tokenweir
