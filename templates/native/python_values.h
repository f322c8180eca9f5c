// Python objects to values.
#pragma once

#include <Python.h>

#include <set>
#include <string>
#include <vector>

#include "rendering.h"

namespace tokenweir::templates {

// Reads the variables of a render. Strings are used where they lie, so this holds them until it is destroyed, which needs
// the GIL as reading does.
class PythonInput {
 public:
  PythonInput(Rendering& rendering, const std::set<std::string>& vouched) : rendering_(rendering), vouched_(vouched) {}
  ~PythonInput();
  PythonInput(const PythonInput&) = delete;
  PythonInput& operator=(const PythonInput&) = delete;

  // `variables` is a mapping, or bytes of a JSON object. Raises Failure or BadText with the path, or PythonError.
  void read(PyObject* variables);

 private:
  struct Key {
    PyObject* object = nullptr;
    Symbol* symbol = nullptr;
  };
  static constexpr size_t kKeys = 256;  // cached symbols of keys
  static constexpr Py_ssize_t kShort = 64;  // bytes of a string that is copied

  void read_json_bytes(PyObject* bytes);
  void read_variable(PyObject* name, PyObject* value);
  Value value(PyObject* object, uint32_t origin);
  Value text(PyObject* object, uint32_t origin);
  Value integer(PyObject* object, uint32_t origin);
  Value dict(PyObject* object, uint32_t origin);
  Value sequence(PyObject* object, uint32_t origin);
  Value other(PyObject* object, uint32_t origin);
  void add_entry(Dict& dict, PyObject* key, PyObject* item, uint32_t origin);
  std::string_view utf8(PyObject* object, uint32_t origin, const char* what);
  Symbol* symbol(PyObject* key, uint32_t origin);
  void hold(PyObject* object);
  [[noreturn]] void refuse(uint32_t origin, const std::string& what) const;

  Rendering& rendering_;
  const std::set<std::string>& vouched_;
  std::vector<PyObject*> held_;
  Key keys_[kKeys];
};

// A Python exception is set.
struct PythonError {};

}  // namespace tokenweir::templates
