#include "python/known_objects.h"

#include <utility>

namespace tokenweir::templates {

namespace {

bool is_constant(PyObject* object) {
  return PyUnicode_Check(object) || object == Py_None || PyBool_Check(object) || PyLong_Check(object) ||
         PyFloat_Check(object);
}

// Visits an object and all in it, until `visit` refuses one or there is one of another type.
template <class Visit>
bool walk(PyObject* object, Visit&& visit) {
  if (!visit(object)) return false;
  if (is_constant(object)) return true;
  if (PyDict_CheckExact(object)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);)
      if (!visit(key) || !walk(item, visit)) return false;
  } else if (PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PyList_Size(object); i++)
      if (!walk(PyList_GetItem(object, i), visit)) return false;
  } else if (PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(object); i++)
      if (!walk(PyTuple_GetItem(object, i), visit)) return false;
  } else {
    return false;
  }
  return visit(nullptr);
}

}  // namespace

void KnownObjects::clear() {
  const std::vector<nanobind::object> dropped = std::exchange(objects_, {});  // for the end of an object may run code
  items_ = 0;
  are_plain_ = true;
}

void KnownObjects::add(PyObject* list, Py_ssize_t begin) {
  const auto note = [&](PyObject* object) {
    objects_.push_back(nanobind::borrow(object));
    return true;
  };
  for (items_ = PyList_Size(list); are_plain_ && begin < items_; begin++)
    are_plain_ = walk(PyList_GetItem(list, begin), note);
}

bool KnownObjects::begins(PyObject* list) const {
  if (!are_plain_ || PyList_Size(list) < items_) return false;
  auto next = objects_.begin();
  const auto is_next = [&](PyObject* object) { return next != objects_.end() && (next++)->ptr() == object; };
  for (Py_ssize_t i = 0; i < items_; i++)
    if (!walk(PyList_GetItem(list, i), is_next)) return false;
  return true;
}

}  // namespace tokenweir::templates
