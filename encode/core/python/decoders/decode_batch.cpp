// Binding of DecodeBatch.

#include "decoders/decode_batch.h"
#include "python/bindings.h"
#include "python/decoders/decoding.h"

namespace tokenweir {

namespace {

class PyDecodeBatch {
 public:
  PyDecodeBatch(std::shared_ptr<PyTokenBytes> tokens, bool skip_special, bool whole_runs)
      : tokens_(std::move(tokens)), core_(DecodeState(tokens_->table, skip_special, whole_runs)) {}

  size_t size() const { return core_.size(); }

  size_t add(nb::handle prompt_ids) { return core_.add(after_prompt(tokens_->table, core_.start(), prompt_ids)); }

  size_t copy(int64_t slot) {
    check_slot(slot);
    return core_.add(DecodeState(core_[static_cast<size_t>(slot)]));
  }

  // Validates all slots and ids before it takes any, so that an error changes no sequence.
  nb::list step(nb::handle slots, nb::handle ids) {
    const Ids slot_of(slots);
    const nb::object rows = owned(PySequence_Fast(ids.ptr(), "ids must be a sequence"));
    const auto n_rows = static_cast<size_t>(PySequence_Size(rows.ptr()));
    if (n_rows != slot_of.size())
      throw nb::value_error(("there are " + std::to_string(slot_of.size()) + " slots and " + std::to_string(n_rows) +
                             " ids or rows of ids")
                                .c_str());
    const bool listed = PyList_Check(rows.ptr());
    std::vector<Step> steps;
    std::vector<size_t> taken;
    steps.reserve(n_rows);
    taken.reserve(n_rows);
    for (size_t i = 0; i < n_rows; i++) {
      const auto at = static_cast<Py_ssize_t>(i);
      PyObject* row = listed ? PyList_GetItem(rows.ptr(), at) : PyTuple_GetItem(rows.ptr(), at);
      if (!row) throw nb::python_error();
      const int64_t slot = slot_of[i];
      check_slot(slot);
      if (PyLong_Check(row) || !PySequence_Check(row)) {
        taken.push_back(checked(slot, token_id(row)));
      } else {
        const Ids several(row);
        for (size_t k = 0; k < several.size(); k++)
          if (const int64_t id = several[k]; id != kPadding) taken.push_back(checked(slot, id));
      }
      steps.push_back({static_cast<size_t>(slot), taken.size()});
    }
    const nb::object texts = owned(PyList_New(static_cast<Py_ssize_t>(n_rows)));
    size_t from = 0;
    for (size_t i = 0; i < n_rows; i++) {
      nb::object text = take(core_[steps[i].slot], taken.data() + from, steps[i].end - from);
      PyList_SetItem(texts.ptr(), static_cast<Py_ssize_t>(i), text.release().ptr());
      from = steps[i].end;
    }
    return nb::borrow<nb::list>(texts);
  }

  nb::object remove(int64_t slot) {
    check_slot(slot);
    std::string tail;
    core_.remove(static_cast<size_t>(slot), tail);
    return text_object(tail);
  }

 private:
  struct Step {
    size_t slot, end;  // the end of its ids in the list of all ids
  };

  static constexpr int64_t kPadding = -1;  // in rows

  void check_slot(int64_t slot) const {
    if (!core_.has(slot)) throw nb::value_error(("slot " + std::to_string(slot) + " is not in use").c_str());
  }

  size_t checked(int64_t slot, int64_t id) const {
    if (id >= 0 && static_cast<uint64_t>(id) < tokens_->table.size()) return static_cast<size_t>(id);
    throw BadTokenId("slot " + std::to_string(slot) + ": token id " + std::to_string(id) +
                     " is outside the vocabulary (0 to " + std::to_string(tokens_->table.size() - 1) + ")");
  }

  // Fast path: the text of a single id in mid-text is a cached object.
  nb::object take(DecodeState& state, const size_t* ids, size_t n) {
    if (n == 1 && state.calm() && !state.skips(*ids))
      if (PyObject* text = tokens_->text(*ids)) return nb::steal(text);
    std::string text;
    for (size_t i = 0; i < n; i++) state.take(ids[i], text);
    return text_object(text);
  }

  std::shared_ptr<PyTokenBytes> tokens_;
  DecodeBatch core_;
};

}  // namespace

void bind_decode_batch(nb::module_& m) {
  nb::class_<PyDecodeBatch>(m, "DecodeBatch")
      .def(nb::init<std::shared_ptr<PyTokenBytes>, bool, bool>(), "tokens"_a, "skip_special"_a, "whole_runs"_a = false)
      .def("__len__", &PyDecodeBatch::size)
      .def("add", &PyDecodeBatch::add, "prompt_ids"_a = nb::make_tuple())
      .def("copy", &PyDecodeBatch::copy, "slot"_a)
      .def("step", &PyDecodeBatch::step, "slots"_a, "ids"_a)
      .def("remove", &PyDecodeBatch::remove, "slot"_a);
}

}  // namespace tokenweir
