// Bindings of string arrays in GGUF files.

#include "python/bindings.h"
#include "python/interop.h"
#include "vocabulary/gguf_strings.h"

namespace tokenweir {

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_gguf(nb::module_& m) {
  m.def(
      "gguf_strings",
      [](const Bytes& data, uint64_t offset, uint64_t count) {
        GgufStrings strings(data.data(), data.size(), offset);
        nb::list list;
        for (uint64_t i = 0; i < count; i++) {
          const std::string_view string = strings.next();
          nb::object item =
              nb::steal(PyUnicode_DecodeUTF8(string.data(), static_cast<Py_ssize_t>(string.size()), nullptr));
          if (!item.is_valid()) {
            nb::python_error error;
            if (!error.matches(PyExc_UnicodeDecodeError)) throw error;
            strings.not_utf8(string);
          }
          list.append(item);
        }
        return list;
      },
      "data"_a, "offset"_a, "count"_a);
  m.def(
      "gguf_skip_strings",
      [](const Bytes& data, uint64_t offset, uint64_t count) {
        GgufStrings strings(data.data(), data.size(), offset);
        for (uint64_t i = 0; i < count; i++) strings.next();
        return strings.offset();
      },
      "data"_a, "offset"_a, "count"_a);
}

}  // namespace tokenweir
