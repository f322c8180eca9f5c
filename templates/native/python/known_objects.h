// Python objects that were read, and whether they are still the same.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

namespace tokenweir::templates {

// The items of a list, with all that is in them. Strings and numbers do not change, so an object in its old place has its
// old value; dicts, lists and tuples are walked through. Holds the objects, else others could come to lie there, so it is
// destroyed with the GIL.
class KnownObjects {
 public:
  void clear();
  // Adds the items of a list from `begin` on.
  void add(PyObject* list, Py_ssize_t begin);
  // Whether a list begins with the items that were added, as they were. Never so if one had an object of another type.
  bool begins(PyObject* list) const;

 private:
  std::vector<nanobind::object> objects_;  // in order; null behind the last one in a container
  Py_ssize_t items_ = 0;
  bool are_plain_ = true;
};

}  // namespace tokenweir::templates
