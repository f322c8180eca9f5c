// Conversions between lists of ids and Arrow arrays, without copying the ids.

#include "python/bindings.h"

#include <algorithm>
#include <string>

#include "python/arrays/arrow.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

using IdArray = nb::ndarray<nb::numpy, const int32_t, nb::ndim<1>, nb::c_contig>;
using OffsetArray = nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>, nb::c_contig>;

// An array of large_list<int32>: the structs of the list and its items, and the memory that they point to.
struct ListSchema {
  ArrowSchema item{"i",    "item",  nullptr, kArrowNullable,
                   0,      nullptr, nullptr, [](ArrowSchema* self) { self->release = nullptr; },
                   nullptr};
  ArrowSchema* children[1] = {&item};
};

struct ListArray {
  nb::object ids, offsets;  // own the memory
  const void *list_buffers[2], *item_buffers[2];
  ArrowArray item;
  ArrowArray* children[1] = {&item};
};

template <class T>
nb::capsule capsule_of(T* value, const char* name) {
  return nb::steal<nb::capsule>(PyCapsule_New(value, name, [](PyObject* capsule) {
    auto* value = static_cast<T*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (value->release) value->release(value);
    delete value;
  }));
}

nb::tuple to_arrow(nb::object id_object, nb::object offset_object) {
  const auto ids = nb::cast<IdArray>(id_object);
  const auto offsets = nb::cast<OffsetArray>(offset_object);
  const int64_t *first = offsets.data(), *end = first + offsets.size();
  if (first == end || *first < 0 || end[-1] > static_cast<int64_t>(ids.size()))
    throw nb::value_error("the offsets lead past the ids");
  if (!std::is_sorted(first, end)) throw nb::value_error("the offsets do not ascend");

  auto* schema = new ArrowSchema{};
  schema->format = "+L";
  schema->name = "";
  schema->flags = kArrowNullable;
  schema->n_children = 1;
  auto* inner = new ListSchema;
  schema->children = inner->children;
  schema->private_data = inner;
  schema->release = [](ArrowSchema* self) {
    delete static_cast<ListSchema*>(self->private_data);
    self->release = nullptr;
  };

  auto* array = new ArrowArray{};
  auto* lists = new ListArray{id_object, offset_object, {nullptr, offsets.data()}, {nullptr, ids.data()}, {}};
  lists->item.length = static_cast<int64_t>(ids.size());
  lists->item.n_buffers = 2;
  lists->item.buffers = lists->item_buffers;
  lists->item.release = [](ArrowArray* self) { self->release = nullptr; };
  array->length = static_cast<int64_t>(offsets.size()) - 1;
  array->n_buffers = 2;
  array->buffers = lists->list_buffers;
  array->n_children = 1;
  array->children = lists->children;
  array->private_data = lists;
  array->release = [](ArrowArray* self) {
    const GilAcquire lock;  // any thread may release an array
    delete static_cast<ListArray*>(self->private_data);
    self->release = nullptr;
  };
  return nb::make_tuple(capsule_of(schema, "arrow_schema"), capsule_of(array, "arrow_array"));
}

// Returns a numpy view of numbers inside an array, which it keeps alive.
template <class T>
nb::object numbers(const std::shared_ptr<ArrowArray>& array, const T* data, size_t n) {
  auto* owner = new std::shared_ptr<ArrowArray>(array);
  nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<std::shared_ptr<ArrowArray>*>(p); });
  static const T nothing = 0;  // an empty array may have no memory
  return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(data ? data : &nothing, {n}, capsule));
}

// Returns (ids, offsets) of each array, without copying: the int32 values, and the bounds of each list.
nb::list from_arrow(nb::handle object) {
  nb::list found;
  std::string format;
  const auto begin = [&](const ArrowSchema& schema) {
    format = schema.format;
    const bool of_ids = schema.n_children == 1 && std::string_view(schema.children[0]->format) == "i";
    if (schema.dictionary || !(format == "+l" || format == "+L") || !of_ids)
      throw std::invalid_argument(
          "an Arrow array of format '" + format + "'" +
          (schema.n_children == 1 ? " of '" + std::string(schema.children[0]->format) + "'" : "") +
          " is not one of lists of int32: cast it to list or large_list of int32");
  };
  each_arrow_array(object, begin, [&](const std::shared_ptr<ArrowArray>& array) {
    check_no_nulls(*array, "lists");
    const ArrowArray& item = *array->children[0];
    check_no_nulls(item, "ids");
    const auto n = static_cast<size_t>(array->length);
    const auto* ids = static_cast<const int32_t*>(item.buffers[1]);
    const nb::object taken = numbers(array, ids ? ids + item.offset : ids, static_cast<size_t>(item.length));
    if (n == 0) {
      found.append(nb::make_tuple(taken, numbers<int64_t>(array, nullptr, 1)));
    } else if (format == "+L") {
      const auto* offsets = static_cast<const int64_t*>(array->buffers[1]) + array->offset;
      found.append(nb::make_tuple(taken, numbers(array, offsets, n + 1)));
    } else {
      const auto* offsets = static_cast<const int32_t*>(array->buffers[1]) + array->offset;
      found.append(nb::make_tuple(taken, numbers(array, offsets, n + 1)));
    }
  });
  return found;
}

}  // namespace

void bind_ragged(nb::module_& m) {
  m.def("ragged_to_arrow", &to_arrow, "ids"_a, "offsets"_a);
  m.def("ragged_from_arrow", &from_arrow, "array"_a);
}

}  // namespace tokenweir
