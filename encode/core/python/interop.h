// Conversions between Python objects and the core: texts, ids, arrays, errors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/character_offsets.h"
#include "base/errors.h"
#include "base/gil.h"
#include "base/span.h"
#include "base/utf8.h"

namespace tokenweir {

namespace nb = nanobind;
using namespace nb::literals;

inline nb::object error_class(const char* name) { return nb::module_::import_("tokenweir.encode.errors").attr(name); }

[[noreturn]] inline void raise(const char* name, const std::string& message) {
  PyErr_SetString(error_class(name).ptr(), message.c_str());
  throw nb::python_error();
}

// Takes over a new reference; throws the error that is set if it is null.
inline nb::object owned(PyObject* object) {
  if (!object) throw nb::python_error();
  return nb::steal(object);
}

// Returns the UTF-8 form of a str, which owns it. `where` names the text in errors.
inline std::string_view utf8(nb::handle text, const std::string& where = "text") {
  if (!PyUnicode_Check(text.ptr()))
    throw nb::type_error((where + " must be str, not " + nb::type_name(text.type()).c_str()).c_str());
  Py_ssize_t size;
  if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {data, static_cast<size_t>(size)};
  nb::python_error error;
  if (!error.matches(PyExc_UnicodeEncodeError)) throw error;
  const auto at = nb::cast<size_t>(error.value().attr("start"));
  char message[96];
  std::snprintf(message, sizeof message, " has a lone surrogate U+%04X at character %zu",
                static_cast<unsigned>(PyUnicode_ReadChar(text.ptr(), static_cast<Py_ssize_t>(at))), at);
  raise("TextError", where + message);
}

inline nb::object text_object(std::string_view text) {
  return owned(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "strict"));
}

// Converts ascending character offsets to byte offsets.
inline std::vector<size_t> byte_offsets(std::string_view text, const std::vector<size_t>& characters) {
  std::vector<size_t> bytes;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  size_t at = 0, character = 0;
  for (const size_t wanted : characters) {
    if (wanted < character) throw nb::value_error("guarded offsets must ascend");
    for (; character < wanted && at < text.size(); character++) at += utf8_length(p[at]);
    if (at == text.size()) throw nb::value_error("a guarded offset is past the end of the text");
    bytes.push_back(at);
  }
  return bytes;
}

// Runs `work` without the GIL if the text is long enough to be worth releasing it.
template <class Work>
void unlocked(size_t bytes, Work&& work) {
  if (bytes < 4096) return work();
  const GilRelease release;
  work();
}

// -- arrays and lists --------------------------------------------------------------------------------------------------

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::unique_ptr<T[]> data, std::initializer_list<size_t> shape) {
  T* p = data.get();
  nb::capsule owner(data.release(), [](void* q) noexcept { delete[] static_cast<T*>(q); });
  return nb::ndarray<nb::numpy, T>(p, shape, owner);
}

template <class Values>
auto to_numpy(const Values& values) {
  using T = std::remove_cv_t<std::remove_reference_t<decltype(values[0])>>;
  std::unique_ptr<T[]> copy(new T[values.size()]);
  std::copy(values.begin(), values.end(), copy.get());
  return to_numpy(std::move(copy), {values.size()});
}

// Copies structs to an array with one row of words per struct.
template <class Word, class T>
auto rows(const std::vector<T>& structs) {
  constexpr size_t width = sizeof(T) / sizeof(Word);
  std::unique_ptr<Word[]> words(new Word[structs.size() * width]);
  if (!structs.empty()) std::memcpy(words.get(), structs.data(), structs.size() * sizeof(T));
  return to_numpy(std::move(words), {structs.size(), width});
}

// Return the getter of a property that copies a member, or what a method returns, to an array.
template <class Class, class Member>
auto copy_of(Member Class::* member) {
  return [member](const Class& self) { return to_numpy(std::invoke(member, self)); };
}

template <class Word, class Class, class Member>
auto rows_of(Member Class::* member) {
  return [member](const Class& self) { return rows<Word>(std::invoke(member, self)); };
}

// Copies spans to an array with one row per span.
inline nb::ndarray<nb::numpy, int64_t> span_array(const std::vector<Span>& spans) {
  static_assert(sizeof(Span) == 2 * sizeof(int64_t));
  return rows<int64_t>(spans);
}

inline nb::ndarray<nb::numpy, int32_t> to_numpy(const int32_t* ids, size_t n) {
  std::unique_ptr<int32_t[]> copy(new int32_t[n]);
  std::copy(ids, ids + n, copy.get());
  return to_numpy(std::move(copy), {n});
}

// A cache of Python objects by id, made on demand: a list of ids then costs a reference per id, not an object. Unused
// entries cost no memory, because the system allocates zeroed pages at the first write.
class ObjectCache {
 public:
  explicit ObjectCache(size_t size)
      : objects_(static_cast<PyObject**>(std::calloc(size + 1, sizeof(PyObject*)))), size_(size) {
    if (!objects_) throw std::bad_alloc();
  }
  ObjectCache(const ObjectCache&) = delete;
  ~ObjectCache() {
    for (size_t id = 0; id < size_; id++) Py_XDECREF(objects_[id]);
    std::free(objects_);
  }

  void prefetch(size_t id) const {
    if (PyObject* object = objects_[id]) __builtin_prefetch(object, 1);
  }

  // Returns a new reference; `make` is called once per id.
  template <class Make>
  PyObject* get(size_t id, Make&& make) {
    PyObject*& object = objects_[id];
    if (!object && !(object = make())) throw nb::python_error();
    Py_INCREF(object);
    return object;
  }

 private:
  PyObject** const objects_;
  const size_t size_;
};

// Converts a Python int; returns nullopt if it needs more than 64 bits.
inline std::optional<int64_t> integer(nb::handle value) {
  int overflow;
  const long long found = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (found == -1 && !overflow && PyErr_Occurred()) throw nb::python_error();
  if (overflow) return {};
  return found;
}

[[noreturn]] inline void refuse_token_id(nb::handle value) {
  throw BadTokenId("token id " + nb::cast<std::string>(nb::str(value)) + " is outside the vocabulary");
}

[[noreturn]] inline void refuse_other_than_id(nb::handle value) {
  PyErr_Clear();
  throw nb::type_error((std::string("a token id is one int, not ") + nb::type_name(value.type()).c_str()).c_str());
}

// Converts an id. Called for every id of a list, so errors have a function of their own.
inline int64_t token_id(nb::handle value) {
  int overflow;
  const long long found = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (found != -1) return found;
  if (overflow) refuse_token_id(value);
  if (PyErr_Occurred()) refuse_other_than_id(value);
  return -1;
}

// A Python sequence of ids; objects are only made for the items that are read.
class Ids {
 public:
  explicit Ids(nb::handle ids)
      : ids_(PySequence_Check(ids.ptr()) ? nb::borrow(ids) : owned(PySequence_List(ids.ptr()))),
        list_(PyList_Check(ids_.ptr())) {}

  size_t size() const { return static_cast<size_t>(PySequence_Size(ids_.ptr())); }

  int64_t operator[](size_t i) const {
    const Py_ssize_t at = static_cast<Py_ssize_t>(i);
    if (list_) {
      PyObject* item = PyList_GetItem(ids_.ptr(), at);
      if (!item) throw nb::python_error();
      return token_id(item);
    }
    return token_id(owned(PySequence_GetItem(ids_.ptr(), at)));
  }

 private:
  nb::object ids_;
  bool list_;
};

using Table16 = nb::ndarray<const uint16_t, nb::c_contig, nb::device::cpu>;
using Table8 = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;

template <class T, class Array>
std::vector<T> values(const Array& array) {
  return std::vector<T>(array.data(), array.data() + array.size());
}

// Converts byte spans to an array of character offsets.
inline nb::ndarray<nb::numpy, int64_t> character_offsets(std::string_view text, std::vector<Span> spans) {
  to_characters(text, spans.data(), spans.size());
  return span_array(spans);
}

using ScoreArray = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Returns views of a list of str, which keeps them alive.
inline std::vector<std::string_view> piece_views(nb::list pieces) {
  std::vector<std::string_view> views;
  for (nb::handle piece : pieces) views.push_back(utf8(piece, "piece " + std::to_string(views.size())));
  return views;
}

}  // namespace tokenweir
