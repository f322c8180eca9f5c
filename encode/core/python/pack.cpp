// Documents, as Python sees them.

#include "python/bindings.h"
#include "device/arrow.h"
#include "python/interop.h"
#include "device/pack.h"

namespace tokenweir {

namespace {

// Documents and whatever owns their bytes.
struct PyDocuments {
  nb::object objects;                        // a tuple of str and bytes
  std::vector<std::shared_ptr<ArrowArray>> arrays;
  Documents documents;

  size_t checked(size_t i) const {
    if (i >= documents.size())
      throw nb::index_error(
          ("document " + std::to_string(i) + " of " + std::to_string(documents.size())).c_str());
    return i;
  }
};

std::vector<std::string_view> object_views(nb::handle texts) {
  const auto n = static_cast<size_t>(PyTuple_Size(texts.ptr()));
  std::vector<std::string_view> views(n);
  for (size_t i = 0; i < n; i++) {
    const nb::handle text = PyTuple_GetItem(texts.ptr(), static_cast<Py_ssize_t>(i));
    Py_ssize_t size;
    if (PyBytes_Check(text.ptr())) {
      char* data;
      PyBytes_AsStringAndSize(text.ptr(), &data, &size);
      views[i] = {data, static_cast<size_t>(size)};
    } else if (!PyUnicode_Check(text.ptr())) {
      throw nb::type_error(
          ("texts[" + std::to_string(i) + "] must be str or bytes, not " + nb::type_name(text.type()).c_str()).c_str());
    } else if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
      views[i] = {data, static_cast<size_t>(size)};
    } else {
      PyErr_Clear();
      utf8(text, "texts[" + std::to_string(i) + "]");  // says what is wrong
    }
  }
  return views;
}

template <class T>
T& arrow_struct(nb::handle capsule, const char* name) {
  auto* found = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!found) throw nb::python_error();
  return *found;
}

std::vector<std::string_view> arrow_views(nb::handle texts, std::vector<std::shared_ptr<ArrowArray>>& arrays) {
  std::vector<std::string_view> views;
  if (nb::hasattr(texts, "__arrow_c_array__")) {
    const nb::object capsules = texts.attr("__arrow_c_array__")();
    const ArrowStrings strings(arrow_struct<ArrowSchema>(capsules[0], "arrow_schema"));
    arrays.push_back(arrow_owned(arrow_struct<ArrowArray>(capsules[1], "arrow_array")));
    strings.append(*arrays.back(), views);
    return views;
  }
  const nb::object capsule = texts.attr("__arrow_c_stream__")();
  auto& stream = arrow_struct<ArrowArrayStream>(capsule, "arrow_array_stream");
  const auto check = [&](int error) {
    const char* why = error ? stream.get_last_error(&stream) : nullptr;
    if (error) throw std::runtime_error("an Arrow stream failed: " + std::string(why ? why : std::strerror(error)));
  };
  ArrowSchema found{};
  check(stream.get_schema(&stream, &found));
  const auto schema = arrow_owned(found);
  const ArrowStrings strings(*schema);
  for (;;) {
    ArrowArray next{};
    check(stream.get_next(&stream, &next));
    if (!next.release) return views;  // the end
    arrays.push_back(arrow_owned(next));
    strings.append(*arrays.back(), views);
  }
}

}  // namespace

void bind_pack(nb::module_& m) {
  nb::class_<PyDocuments>(m, "Documents")
      .def(
          "__init__",
          [](PyDocuments* self, nb::handle texts) {
            std::vector<std::shared_ptr<ArrowArray>> arrays;
            if (nb::hasattr(texts, "__arrow_c_array__") || nb::hasattr(texts, "__arrow_c_stream__")) {
              Documents documents(arrow_views(texts, arrays));
              new (self) PyDocuments{nb::none(), std::move(arrays), std::move(documents)};
            } else {
              nb::object objects = nb::steal(PySequence_Tuple(texts.ptr()));
              if (!objects.is_valid()) throw nb::python_error();
              Documents documents(object_views(objects));
              new (self) PyDocuments{std::move(objects), std::move(arrays), std::move(documents)};
            }
          },
          "texts"_a)
      .def("__len__", [](const PyDocuments& self) { return self.documents.size(); })
      .def("__getitem__",
           [](const PyDocuments& self, size_t i) {
             const std::string_view text = self.documents[self.checked(i)];
             return nb::bytes(text.data(), text.size());
           })
      .def_prop_ro("offsets",
                   [](const PyDocuments& self) {
                     const std::vector<int64_t>& offsets = self.documents.offsets();
                     return nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>>(offsets.data(), {offsets.size()});
                   })
      .def(
          "positions",
          [](const PyDocuments& self, size_t i, const std::vector<size_t>& characters) {
            return byte_offsets(self.documents[self.checked(i)], characters);
          },
          "index"_a, "characters"_a)
      .def(
          "copy",
          [](const PyDocuments& self, size_t first, size_t last,
             nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> buffer, size_t threads) {
            const Documents& documents = self.documents;
            if (first > last || last > documents.size())
              throw nb::index_error(("documents " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                                     std::to_string(documents.size())).c_str());
            const auto bytes = static_cast<size_t>(documents.offsets()[last] - documents.offsets()[first]);
            if (buffer.size() < bytes)
              throw nb::value_error((std::to_string(bytes) + " bytes do not fit into a buffer of " +
                                     std::to_string(buffer.size())).c_str());
            unlocked(bytes, [&] { documents.copy(first, last, buffer.data(), threads); });
          },
          "first"_a, "last"_a, "buffer"_a, "threads"_a = 0);
}

}  // namespace tokenweir
