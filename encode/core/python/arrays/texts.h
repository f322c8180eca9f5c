// Texts from Python, as views of their bytes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/utf8_replace.h"
#include "python/arrays/arrow.h"
#include "python/interop.h"

namespace tokenweir {

inline std::vector<std::string_view> object_views(nb::handle texts) {
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
      utf8(text, "texts[" + std::to_string(i) + "]");  // throws the error
    }
  }
  return views;
}

// A sequence of str and bytes, or Arrow strings, with the owner of their bytes.
struct Texts {
  nb::object objects;  // a tuple; None for Arrow strings
  std::vector<std::shared_ptr<ArrowArray>> arrays;
  std::vector<std::string_view> views;

  explicit Texts(nb::handle texts) : objects(nb::none()) {
    if (is_arrow(texts)) {
      std::unique_ptr<const ArrowStrings> strings;
      each_arrow_array(
          texts, [&](const ArrowSchema& schema) { strings = std::make_unique<const ArrowStrings>(schema); },
          [&](std::shared_ptr<ArrowArray> array) {
            strings->append(*array, views);
            arrays.push_back(std::move(array));
          });
    } else {
      objects = nb::steal(PySequence_Tuple(texts.ptr()));
      if (!objects.is_valid()) throw nb::python_error();
      views = object_views(objects);
    }
  }

  // Throws if bytes are not UTF-8: the CPU's loops might read past their end.
  void check_utf8() const {
    for (size_t i = 0; i < views.size(); i++) {
      const bool is_str =
          !objects.is_none() && PyUnicode_Check(PyTuple_GetItem(objects.ptr(), static_cast<Py_ssize_t>(i)));
      if (!is_str && !is_utf8(views[i])) raise("TextError", "texts[" + std::to_string(i) + "] is not UTF-8");
    }
  }
};

}  // namespace tokenweir
