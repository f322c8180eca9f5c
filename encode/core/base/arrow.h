// Arrays by Arrow's C data interface (https://arrow.apache.org/docs/format/CDataInterface.html): plain structs, so that
// no library is needed. Nothing is copied; an array must outlive the views of its strings.
//
// An array is trusted as far as other code of the process is: buffers have the lengths that Arrow prescribes. Offsets
// of strings are checked, since one pass goes over them anyway.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tokenweir {

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  ArrowSchema **children, *dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray **children, *dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};

// An array in the memory of a device (https://arrow.apache.org/docs/format/CDeviceDataInterface.html).
struct ArrowDeviceArray {
  ArrowArray array;
  int64_t device_id;
  int32_t device_type;
  void* sync_event;  // points to the event to wait for before the memory is read; or null
  int64_t reserved[3];

  static constexpr int32_t kCpu = 1, kCudaHost = 3;  // device types in host memory

  bool on_host() const { return device_type == kCpu || device_type == kCudaHost; }
};

constexpr int64_t kArrowNullable = 2;  // a flag of a schema, which most libraries set

// Moves one of the three structs out of `from`; the last owner releases it.
template <class T>
std::shared_ptr<T> arrow_owned(T& from) {
  std::shared_ptr<T> owned(new T(from), [](T* value) {
    if (value->release) value->release(value);
    delete value;
  });
  from.release = nullptr;
  return owned;
}

// Throws if the array has a null. The error names it `name[i]`; `before` is the index of the array's first value.
inline void check_no_nulls(const ArrowArray& array, const char* name, size_t before = 0) {
  const auto* valid = static_cast<const uint8_t*>(array.buffers[0]);
  if (!valid || array.null_count == 0) return;
  for (int64_t i = 0; i < array.length; i++) {
    const int64_t bit = array.offset + i;
    if (!(valid[bit / 8] >> bit % 8 & 1))
      throw std::invalid_argument(std::string(name) + "[" + std::to_string(before + static_cast<size_t>(i)) +
                                  "] is null");
  }
}

// Strings: utf8, large_utf8 and utf8_view, and the same of binary.
class ArrowStrings {
 public:
  explicit ArrowStrings(const ArrowSchema& schema) : format_(schema.format) {
    const bool known =
        format_ == "u" || format_ == "U" || format_ == "vu" || format_ == "z" || format_ == "Z" || format_ == "vz";
    if (schema.dictionary || !known)
      throw std::invalid_argument("an Arrow array of format '" + format_ + "'" +
                                  (schema.dictionary ? " with a dictionary" : "") +
                                  (format_ == "+s" ? " is a table: take a column of it"
                                                   : " is not one of strings: cast it to string or large_string"));
  }

  // The size of an offset; 0 for view types, which have no offsets.
  size_t offset_bytes() const { return format_[0] == 'v' ? 0 : format_ == "u" || format_ == "z" ? 4 : 8; }

  void append(const ArrowArray& array, std::vector<std::string_view>& views) const {
    check_no_nulls(array, "texts", views.size());
    switch (offset_bytes()) {
      case 0: return append_views(array, views);
      case 4: return append_slices<int32_t>(array, views);
      default: return append_slices<int64_t>(array, views);
    }
  }

 private:
  template <class Offset>
  static void append_slices(const ArrowArray& array, std::vector<std::string_view>& views) {
    if (array.length == 0) return;  // buffers may be absent
    const auto* offsets = static_cast<const Offset*>(array.buffers[1]) + array.offset;
    const auto* data = static_cast<const char*>(array.buffers[2]);
    for (int64_t i = 0; i < array.length; i++) {
      if (offsets[i] < 0 || offsets[i + 1] < offsets[i])
        throw std::invalid_argument("the offsets of texts[" + std::to_string(views.size()) + "] do not ascend");
      views.emplace_back(data ? data + offsets[i] : "", static_cast<size_t>(offsets[i + 1] - offsets[i]));
    }
  }

  static void append_views(const ArrowArray& array, std::vector<std::string_view>& views) {
    if (array.length == 0) return;
    struct View {
      int32_t size;
      char prefix[4];
      int32_t buffer, offset;
    };
    constexpr int32_t kInline = 12;
    const auto* p = static_cast<const char*>(array.buffers[1]) + array.offset * static_cast<int64_t>(sizeof(View));
    const int64_t n_data = array.n_buffers - 3;  // without validity, views and the sizes of the data buffers
    for (int64_t i = 0; i < array.length; i++, p += sizeof(View)) {
      View view;
      std::memcpy(&view, p, sizeof view);
      if (view.size < 0 || (view.size > kInline && (view.offset < 0 || view.buffer < 0 || view.buffer >= n_data)))
        throw std::invalid_argument("the view of texts[" + std::to_string(views.size()) + "] is out of range");
      const char* from = view.size <= kInline ? p + sizeof view.size
                                              : static_cast<const char*>(array.buffers[2 + view.buffer]) + view.offset;
      views.emplace_back(from, static_cast<size_t>(view.size));
    }
  }

  std::string format_;
};

}  // namespace tokenweir
