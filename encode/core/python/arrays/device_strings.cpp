// Binding of Arrow strings in device memory, by address.

#include "python/arrays/arrow.h"
#include "python/bindings.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

struct DeviceStrings {
  std::shared_ptr<ArrowArray> array;
  size_t offset_bytes;
  int32_t device_type;
  int64_t device_id;
  bool on_host;
  uintptr_t event;  // a CUDA handle, or 0

  uintptr_t buffer(size_t number) const { return reinterpret_cast<uintptr_t>(array->buffers[number]); }
};

DeviceStrings device_strings(const ArrowSchema& schema, ArrowDeviceArray& found) {
  const ArrowStrings strings(schema);
  if (strings.offset_bytes() == 0 && !found.on_host())
    throw std::invalid_argument("an Arrow array of format '" + std::string(schema.format) +
                                "' on a device: cast it to string or large_string");
  const uintptr_t event = found.sync_event ? *static_cast<const uintptr_t*>(found.sync_event) : 0;
  return {arrow_owned(found.array), strings.offset_bytes(), found.device_type, found.device_id, found.on_host(), event};
}

}  // namespace

void bind_device_strings(nb::module_& m) {
  nb::class_<DeviceStrings>(m, "DeviceStrings")
      .def(
          "__init__",
          [](DeviceStrings* self, nb::handle source) {
            new (self) DeviceStrings(with_device_array(source, device_strings));
          },
          "array"_a)
      .def("__len__", [](const DeviceStrings& self) { return self.array->length; })
      .def_ro("on_host", &DeviceStrings::on_host)
      .def_prop_ro("device", [](const DeviceStrings& self) { return std::pair(self.device_type, self.device_id); })
      .def_ro("event", &DeviceStrings::event)
      .def_prop_ro("first", [](const DeviceStrings& self) { return self.array->offset; })
      .def_prop_ro("validity",
                   [](const DeviceStrings& self) { return self.array->null_count ? self.buffer(0) : uintptr_t{0}; })
      .def_ro("offset_bytes", &DeviceStrings::offset_bytes)
      .def_prop_ro("offsets", [](const DeviceStrings& self) { return self.buffer(1); })
      .def_prop_ro("bytes", [](const DeviceStrings& self) { return self.buffer(2); });
}

}  // namespace tokenweir
