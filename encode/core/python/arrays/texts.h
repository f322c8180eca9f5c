// Texts from Python, as views of their bytes.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/utf8_replace.h"
#include "python/arrays/arrow.h"
#include "python/interop.h"

namespace tokenweir {

// A sequence of str and bytes, or Arrow strings, with the owner of their bytes.
struct Texts {
  nb::object objects;  // a tuple; None for Arrow strings
  std::vector<std::shared_ptr<ArrowArray>> arrays;
  // The view of a str has no data and the number of its characters, until `convert`.
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
      objects = owned(PySequence_Tuple(texts.ptr()));
      views.resize(static_cast<size_t>(PyTuple_Size(objects.ptr())));
      for (size_t i = 0; i < views.size(); i++) views[i] = object_view(i);
    }
  }

  // Makes the views of the texts from `first` to `end` complete. Converting a str to UTF-8 takes about a tenth of the
  // time of encoding it, unless it is ASCII.
  void convert(size_t first, size_t end) {
    for (size_t i = first; i < end; i++) {
      if (views[i].data()) continue;
      const nb::handle text = object(i);
      Py_ssize_t size;
      if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
        views[i] = {data, static_cast<size_t>(size)};
      } else {
        PyErr_Clear();
        utf8(text, "texts[" + std::to_string(i) + "]");  // throws the error
      }
    }
  }

  void convert() { convert(0, views.size()); }

  // Throws if bytes are not UTF-8: the CPU's loops might read past their end.
  void check_utf8() const {
    for (size_t i = 0; i < views.size(); i++) {
      const bool is_str = !objects.is_none() && PyUnicode_Check(object(i).ptr());
      if (!is_str && !is_utf8(views[i])) raise("TextError", "texts[" + std::to_string(i) + "] is not UTF-8");
    }
  }

 private:
  nb::handle object(size_t i) const { return PyTuple_GetItem(objects.ptr(), static_cast<Py_ssize_t>(i)); }

  std::string_view object_view(size_t i) const {
    const nb::handle text = object(i);
    if (PyBytes_Check(text.ptr())) {
      char* data;
      Py_ssize_t size;
      PyBytes_AsStringAndSize(text.ptr(), &data, &size);
      return {data, static_cast<size_t>(size)};
    }
    if (!PyUnicode_Check(text.ptr()))
      throw nb::type_error(
          ("texts[" + std::to_string(i) + "] must be str or bytes, not " + nb::type_name(text.type()).c_str()).c_str());
    return {nullptr, static_cast<size_t>(PyUnicode_GetLength(text.ptr()))};
  }
};

}  // namespace tokenweir
