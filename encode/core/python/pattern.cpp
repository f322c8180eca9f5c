// Binding of compiled patterns.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include "python/bindings.h"

#include <memory>
#include <optional>

#include "pattern/compiled_pattern.h"
#include "python/interop.h"

namespace tokenweir {

void bind_pattern(nb::module_& m) {
  using Tables = std::tuple<Table8, Table16, Table8>;
  nb::class_<CompiledPattern>(m, "CompiledPattern")
      .def(
          "__init__",
          [](CompiledPattern* self, const Table16& transitions, const Table16& class_index, const Table8& class_pages,
             size_t n_classes, const Table8& sync, const std::optional<Tables>& context) {
            std::unique_ptr<const Context> built;
            if (context) {
              const auto& [behind, steps, symbols] = *context;
              built = std::make_unique<Context>(values<uint8_t>(behind), values<uint16_t>(steps),
                                                values<uint8_t>(symbols), n_classes + 1);
            }
            new (self)
                CompiledPattern(values<uint16_t>(transitions), values<uint16_t>(class_index),
                                values<uint8_t>(class_pages), n_classes, values<uint8_t>(sync), std::move(built));
          },
          "transitions"_a, "class_index"_a, "class_pages"_a, "n_classes"_a, "sync"_a, "context"_a.none())
      .def_prop_ro("may_rescan", &CompiledPattern::may_rescan);
}

}  // namespace tokenweir
