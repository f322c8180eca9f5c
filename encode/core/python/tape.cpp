// Bindings of Tape.

#include "encoder/tape.h"
#include "python/bindings.h"
#include "python/interop.h"
#include "python/py_encoder.h"

namespace tokenweir {

namespace {

// UTF-8, and its owner.
struct Source {
  std::string_view text;
  std::shared_ptr<const void> owner;
};

// Copies a str, and refers to the memory of other objects, which must be valid UTF-8.
Source source_of(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) {
    const auto copy = std::make_shared<const std::string>(utf8(object));
    return {*copy, copy};
  }
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_SIMPLE) != 0) throw nb::python_error();
  const std::string_view text(static_cast<const char*>(view->buf), static_cast<size_t>(view->len));
  return {text, {view.release(), [](Py_buffer* held) {  // in any thread
                   const GilAcquire locked;
                   PyBuffer_Release(held);
                   delete held;
                 }}};
}

nb::object tape_of(const PyEncoder& encoder, nb::handle source, const std::vector<size_t>& guarded,
                   nb::handle earlier) {
  auto [text, owner] = source_of(source);
  std::vector<size_t> guards = byte_offsets(text, guarded);
  const Tape* const before = earlier.is_none() ? nullptr : nb::cast<const Tape*>(earlier);
  std::unique_ptr<Tape> tape;
  bool same = false;
  PyEncoder::Call call(encoder, text, {});
  unlocked(text.size(), [&, text = text, owner = std::move(owner)]() mutable {
    same = before && before->is_of(text, guards);
    if (!same)
      tape = std::make_unique<Tape>(encoder.encoder, text, std::move(owner), std::move(guards), before, *call.w);
  });
  return same ? nb::borrow(earlier) : nb::cast(tape.release(), nb::rv_policy::take_ownership);
}

nb::object tape_of_ids(nb::handle source, const std::vector<size_t>& guarded,
                       const nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& ids) {
  auto [text, owner] = source_of(source);
  std::vector<size_t> guards = byte_offsets(text, guarded);
  std::vector<int32_t> taken(ids.data(), ids.data() + ids.size());
  return nb::cast(new Tape(text, std::move(owner), std::move(guards), std::move(taken)), nb::rv_policy::take_ownership);
}

std::optional<size_t> ids_before(const PyEncoder& encoder, const Tape& tape, size_t byte) {
  PyEncoder::Call call(encoder, {}, {});
  const size_t count = tape.ids_before(encoder.encoder, byte, *call.w);
  if (count == SIZE_MAX) return {};
  return count;
}

}  // namespace

void bind_tape(nb::module_& m) {
  nb::class_<Tape>(m, "Tape")
      .def_prop_ro("ids",
                   [](nb::handle self) {
                     const std::vector<int32_t>& ids = nb::cast<const Tape&>(self).ids();
                     return nb::ndarray<nb::numpy, const int32_t>(ids.data(), {ids.size()}, self);
                   })
      .def_prop_ro("cuts",
                   [](const Tape& self) {
                     std::vector<std::pair<uint32_t, uint32_t>> cuts;
                     for (const Cut& cut : self.cuts()) cuts.emplace_back(cut.byte, cut.ids);
                     return cuts;
                   })
      .def_prop_ro("difference", &Tape::difference)
      .def_prop_ro("resumed", &Tape::resumed)
      .def_prop_ro("rejoined", &Tape::rejoined)
      .def_prop_ro("reused_ids", &Tape::reused_ids)
      .def_prop_ro("size", [](const Tape& self) { return self.text().size(); })
      .def_prop_ro("memory", &Tape::memory)
      .def_prop_ro("guards", &Tape::guards)
      .def(
          "character", [](const Tape& self, size_t byte) { return count_characters(self.text().substr(0, byte)); },
          "byte"_a)
      .def(
          "bytes",
          [](const Tape& self, size_t start, size_t end) {
            const size_t last = std::min(end, self.text().size()), first = std::min(start, last);
            return nb::bytes(self.text().data() + first, last - first);
          },
          "start"_a, "end"_a)
      .def(
          "common_bytes", [](const Tape& self, nb::handle text) { return self.common_bytes(source_of(text).text); },
          "text"_a)
      .def(
          "common",
          [](const Tape& self, const Tape& other) {
            const Tape::Common common = self.common(other);
            return nb::make_tuple(common.bytes, common.ids);
          },
          "other"_a);
  m.def("ids_before", &ids_before, "encoder"_a, "tape"_a, "byte"_a);
  m.def("tape_of_ids", &tape_of_ids, "text"_a, "guarded"_a, "ids"_a);
  m.def("tape", &tape_of, "encoder"_a, "text"_a, "guarded"_a, "earlier"_a.none());
}

}  // namespace tokenweir
