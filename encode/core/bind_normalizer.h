// The normalizer and its steps as Python sees them.
#pragma once

#include <nanobind/stl/shared_ptr.h>

#include "interop.h"
#include "normalize.h"
#include "normalizer.h"

namespace tokenweir {

inline void bind_normalizer(nb::module_& m) {
  nb::class_<NormalizerStep>(m, "NormalizerStep");
  nb::class_<NormalForm, NormalizerStep>(m, "NormalForm").def(nb::init<>());

  nb::class_<Normalizer>(m, "Normalizer")
      .def(
          "__init__",
          [](Normalizer* self, const std::vector<std::shared_ptr<NormalizerStep>>& steps) {
            new (self) Normalizer({steps.begin(), steps.end()});
          },
          "steps"_a)
      .def("normalize",
           [](const Normalizer& self, nb::handle source) {
             const std::string_view text = utf8(source);
             std::string out;
             self.apply(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, nullptr);
             return out;
           })
      .def("normalize_with_origin", [](const Normalizer& self, nb::handle source) {
        const std::string_view text = utf8(source);
        std::string out;
        std::vector<Span> origin;
        self.apply(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, &origin);
        return nb::make_tuple(out, character_offsets(text, origin));
      });
}

}  // namespace tokenweir
