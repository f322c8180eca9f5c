// Arrow arrays from Python, by capsules that all Arrow libraries support
// (https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html).
#pragma once

#include <string>
#include <utility>

#include "base/arrow.h"
#include "python/interop.h"

namespace tokenweir {

inline bool is_arrow(nb::handle object) {
  return nb::hasattr(object, "__arrow_c_array__") || nb::hasattr(object, "__arrow_c_stream__") ||
         nb::hasattr(object, "__arrow_c_device_array__");
}

template <class T>
T& arrow_struct(nb::handle capsule, const char* name) {
  auto* found = static_cast<T*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (!found) throw nb::python_error();
  return *found;
}

// Calls `use(schema, array)` for an array in the memory of any device.
template <class Use>
auto with_device_array(nb::handle object, Use&& use) {
  const nb::object capsules = object.attr("__arrow_c_device_array__")();
  return use(arrow_struct<ArrowSchema>(capsules[0], "arrow_schema"),
             arrow_struct<ArrowDeviceArray>(capsules[1], "arrow_device_array"));
}

// Calls `begin(schema)` once, and then `use(array)` for an array, or for each array of a stream.
template <class Begin, class Use>
void each_arrow_array(nb::handle object, Begin&& begin, Use&& use) {
  if (nb::hasattr(object, "__arrow_c_array__")) {
    const nb::object capsules = object.attr("__arrow_c_array__")();
    begin(arrow_struct<ArrowSchema>(capsules[0], "arrow_schema"));
    return use(arrow_owned(arrow_struct<ArrowArray>(capsules[1], "arrow_array")));
  }
  if (!nb::hasattr(object, "__arrow_c_stream__"))
    return with_device_array(object, [&](const ArrowSchema& schema, ArrowDeviceArray& found) {
      if (!found.on_host())
        throw std::invalid_argument("an Arrow array on a device of type " + std::to_string(found.device_type) +
                                    ", whose memory the CPU does not read");
      begin(schema);
      use(arrow_owned(found.array));
    });
  const nb::object capsule = object.attr("__arrow_c_stream__")();
  auto& stream = arrow_struct<ArrowArrayStream>(capsule, "arrow_array_stream");
  const auto check = [&](int error) {
    const char* why = error ? stream.get_last_error(&stream) : nullptr;
    if (error) throw std::runtime_error("an Arrow stream failed: " + std::string(why ? why : std::strerror(error)));
  };
  ArrowSchema found{};
  check(stream.get_schema(&stream, &found));
  const auto schema = arrow_owned(found);
  begin(*schema);
  for (;;) {
    ArrowArray next{};
    check(stream.get_next(&stream, &next));
    if (!next.release) return;  // the end
    use(arrow_owned(next));
  }
}

}  // namespace tokenweir
