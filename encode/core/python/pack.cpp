// Binding of Documents.

#include "base/documents.h"
#include "python/arrays/texts.h"
#include "python/bindings.h"
#include "python/interop.h"

namespace tokenweir {

namespace {

struct PyDocuments {
  Texts texts;
  Documents documents;

  size_t checked(size_t i) const {
    if (i >= documents.size())
      throw nb::index_error(("document " + std::to_string(i) + " of " + std::to_string(documents.size())).c_str());
    return i;
  }
};

}  // namespace

void bind_pack(nb::module_& m) {
  nb::class_<PyDocuments>(m, "Documents")
      .def(
          "__init__",
          [](PyDocuments* self, nb::handle source) {
            Texts texts(source);
            texts.convert();
            Documents documents(texts.views);
            new (self) PyDocuments{std::move(texts), std::move(documents)};
          },
          "texts"_a)
      .def("__len__", [](const PyDocuments& self) { return self.documents.size(); })
      .def("__getitem__",
           [](const PyDocuments& self, size_t i) {
             const std::string_view text = self.documents[self.checked(i)];
             return nb::bytes(text.data(), text.size());
           })
      .def_prop_ro("offsets",
                   [](const PyDocuments& self) {
                     const std::vector<int64_t>& offsets = self.documents.offsets();
                     return nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>>(offsets.data(), {offsets.size()});
                   })
      .def(
          "positions",
          [](const PyDocuments& self, size_t i, const std::vector<size_t>& characters) {
            return byte_offsets(self.documents[self.checked(i)], characters);
          },
          "index"_a, "characters"_a)
      .def(
          "copy",
          [](const PyDocuments& self, size_t first, size_t last,
             nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> buffer, size_t threads) {
            const Documents& documents = self.documents;
            if (first > last || last > documents.size())
              throw nb::index_error(("documents " + std::to_string(first) + " to " + std::to_string(last) + " of " +
                                     std::to_string(documents.size()))
                                        .c_str());
            const auto bytes = static_cast<size_t>(documents.offsets()[last] - documents.offsets()[first]);
            if (buffer.size() < bytes)
              throw nb::value_error(
                  (std::to_string(bytes) + " bytes do not fit into a buffer of " + std::to_string(buffer.size()))
                      .c_str());
            unlocked(bytes, [&] { documents.copy(first, last, buffer.data(), threads); });
          },
          "first"_a, "last"_a, "buffer"_a, "threads"_a = 0);
}

}  // namespace tokenweir
