// Python objects to values.
#pragma once

#include <nanobind/nanobind.h>

#include <set>
#include <string>
#include <vector>

#include "evaluate/rendering.h"

namespace tokenweir::templates {

// Reads objects, with an origin for each value. Strings are used where they lie, so this holds them until it is destroyed,
// which needs the GIL as reading does. All raise BadInput or BadText with the path, or python_error.
class PythonInput {
 public:
  PythonInput(Workspace& workspace, Origins& origins) : workspace_(workspace), origins_(origins) { held_.reserve(16); }
  PythonInput(const PythonInput&) = delete;
  PythonInput& operator=(const PythonInput&) = delete;

  // Reads a mapping, or bytes of a JSON object, into the inputs of a render.
  void read_variables(PyObject* variables, Rendering& rendering, const std::set<std::string>& vouched);
  // Reads one more variable.
  void read_variable(PyObject* name, PyObject* item, Rendering& rendering, bool vouched);
  // Mappings in a sequence: `messages`, `tools` or `documents`, whose origin this is.
  List* mappings(PyObject* values, uint32_t origin);
  // A new Python list of the sequence's items, for code of a mapping or model may change the sequence.
  nanobind::object items(PyObject* values, uint32_t origin) const;
  // Appends mappings of such a list, from `begin` on.
  void add_mappings(List& list, PyObject* items, Py_ssize_t begin, uint32_t origin);

 private:
  struct Key {
    PyObject* object = nullptr;
    Symbol* symbol = nullptr;
  };
  static constexpr size_t kKeys = 64;       // cached symbols of keys
  static constexpr Py_ssize_t kShort = 64;  // bytes of a string that is copied

  void read_json_bytes(PyObject* bytes, Rendering& rendering, const std::set<std::string>& vouched);
  Value value(PyObject* object, uint32_t origin);
  Value text(PyObject* object, uint32_t origin);
  Value integer(PyObject* object, uint32_t origin);
  Value dict(PyObject* object, uint32_t origin);
  Value sequence(PyObject* object, uint32_t origin);
  Value mapping(PyObject* object, uint32_t origin);
  Value other(PyObject* object, uint32_t origin);
  void enter(uint32_t origin);
  void add_entry(Dict& dict, PyObject* key, PyObject* item, uint32_t origin);
  std::string_view utf8(PyObject* object, uint32_t origin, const char* what);
  Symbol* symbol(PyObject* key, uint32_t origin);
  [[noreturn]] void refuse(uint32_t origin, const std::string& what) const;

  Workspace& workspace_;
  Origins& origins_;
  const char* prefix_ = "";  // of paths in errors
  int depth_ = 0;            // of the value that is being read
  std::vector<nanobind::object> held_;
  Key keys_[kKeys];
};

// The object of an input's value.
nanobind::object to_python(const Value& value);

}  // namespace tokenweir::templates
