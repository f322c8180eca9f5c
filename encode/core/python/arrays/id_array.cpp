// numpy's C API is a table of functions, whose indices are part of its ABI and never change. Taking a function from the
// table by index needs no numpy headers, which would tie the build to a numpy version.

#include "python/arrays/id_array.h"

#include <utility>

#include "encoder/workspace.h"

namespace tokenweir {

namespace {

constexpr size_t kArrayType = 2, kNew = 93;  // indices of the table
constexpr int kInt32 = 5;                    // numpy's type number

// The type of PyArray_New.
using New = PyObject* (*)(PyTypeObject* type, int n_dimensions, const Py_ssize_t* shape, int item,
                          const Py_ssize_t* strides, void* data, int item_size, int flags, PyObject* base);

// The first members of an array object.
struct ArrayHead {
  PyObject_HEAD char* data;
};

void** table;

}  // namespace

void load_numpy() {
  const std::string version = nb::cast<std::string>(nb::module_::import_("numpy").attr("__version__"));
  const bool first = version.compare(0, 2, "1.") == 0;
  const nb::module_ core = nb::module_::import_(first ? "numpy.core.multiarray" : "numpy._core.multiarray");
  const nb::object capsule = core.attr("_ARRAY_API");
  table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (!table) throw nb::python_error();
}

nb::object id_array(IdBuffer& ids) {
  const size_t n = ids.size();
  if (n > Workspace::kMaxKept) {
    auto* const owner = new IdBuffer(std::move(ids));
    const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<IdBuffer*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, int32_t>(owner->data(), {n}, capsule));
  }
  const Py_ssize_t shape = static_cast<Py_ssize_t>(n);
  const nb::object array = owned(reinterpret_cast<New>(table[kNew])(static_cast<PyTypeObject*>(table[kArrayType]), 1,
                                                                    &shape, kInt32, nullptr, nullptr, 0, 0, nullptr));
  if (n > 0) std::memcpy(reinterpret_cast<ArrayHead*>(array.ptr())->data, ids.data(), n * sizeof(int32_t));
  return array;
}

}  // namespace tokenweir
