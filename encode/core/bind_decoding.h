// TokenBytes and DecodeStream as Python sees them.
#pragma once

#include "decoder.h"
#include "interop.h"
#include "vocabulary.h"

namespace tokenweir {

struct PyTokenBytes {
  TokenBytes table;
  ObjectCache strings;  // of tokens that are whole characters; None for the others

  // The bytes of the tokens, one after the other.
  std::string join(nb::handle ids, bool skip_special) const {
    const Ids sequence(ids);
    std::string bytes;
    for (size_t i = 0; i < sequence.size(); i++) {
      const int64_t id = sequence[i];
      table.check(id);
      if (!(skip_special && table.special(id))) bytes += table.bytes(id);
    }
    return bytes;
  }

  // The text of a token by itself, or null if its bytes are not whole characters; a new reference.
  PyObject* text(size_t id) {
    PyObject* object = strings.get(id, [&]() -> PyObject* {
      const std::string_view bytes = table.bytes(id);
      PyObject* whole = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "strict");
      if (whole) return whole;
      PyErr_Clear();
      Py_INCREF(Py_None);
      return Py_None;
    });
    if (object != Py_None) return object;
    Py_DECREF(object);
    return nullptr;
  }
};

inline nb::object decode_replace(const std::string& bytes) {
  PyObject* text = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (!text) throw nb::python_error();
  return nb::steal(text);
}

// Bytes to text as they come: CPython's own incremental decoder, which keeps back an unfinished character only.
class DecodeStream {
 public:
  DecodeStream(std::shared_ptr<PyTokenBytes> tokens, nb::handle prompt_ids, bool skip_special)
      : tokens_(std::move(tokens)), skip_special_(skip_special) {
    reset(prompt_ids);
  }

  nb::object step(nb::handle item) {
    const TokenBytes& table = tokens_->table;
    const int64_t id = token_id(item);
    table.check(id);
    if (skip_special_ && table.special(id)) return nb::str("");
    if (held_.empty())
      if (PyObject* text = tokens_->text(id)) return nb::steal(text);
    held_ += table.bytes(id);
    return take();
  }

  nb::object feed(nb::handle ids) {
    held_ += tokens_->join(ids, skip_special_);  // a bad id leaves the stream as it was
    return take();
  }

  nb::object flush() {
    nb::object text = decode_replace(held_);
    held_.clear();
    return text;
  }

  // Bytes of a character that has not ended: which id a character's last byte came from depends on it.
  size_t pending() const { return held_.size(); }

  // Only the prompt's last character can be unfinished, so its last three bytes tell everything; ids before those that
  // have them are not looked at.
  void reset(nb::handle prompt_ids) {
    const TokenBytes& table = tokens_->table;
    const Ids ids(prompt_ids);
    std::string bytes;
    for (size_t i = ids.size(); i-- > 0 && bytes.size() < 3;) {
      const int64_t id = ids[i];
      table.check(id);
      if (!(skip_special_ && table.special(id))) bytes.insert(0, table.bytes(id));
    }
    held_ = bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 3));
    while (!held_.empty() && utf8_continues(static_cast<uint8_t>(held_[0]))) held_.erase(0, 1);
    take();
  }

 private:
  nb::object take() {
    Py_ssize_t consumed;
    PyObject* text =
        PyUnicode_DecodeUTF8Stateful(held_.data(), static_cast<Py_ssize_t>(held_.size()), "replace", &consumed);
    if (!text) throw nb::python_error();
    held_.erase(0, static_cast<size_t>(consumed));
    return nb::steal(text);
  }

  std::shared_ptr<PyTokenBytes> tokens_;
  bool skip_special_;
  std::string held_;  // at most 3 bytes between calls
};

inline void bind_decoding(nb::module_& m) {
  nb::class_<PyTokenBytes>(m, "TokenBytes")
      .def(
          "__init__",
          [](PyTokenBytes* self, const Vocabulary& vocabulary,
             const std::vector<std::tuple<uint32_t, std::string, bool>>& added, size_t size) {
            std::vector<std::string> tokens = vocabulary.bytes;
            tokens.resize(std::max(size, tokens.size()));
            std::vector<bool> special(tokens.size());
            for (const auto& [id, content, is_special] : added) {
              if (id >= tokens.size()) throw FileError("added token id " + std::to_string(id) + " is out of range");
              vocabulary.spell(content, tokens[id]);
              special[id] = is_special;
            }
            const size_t n = tokens.size();
            new (self) PyTokenBytes{TokenBytes(tokens, std::move(special)), ObjectCache(n)};
          },
          "vocabulary"_a, "added"_a, "size"_a)
      .def("__len__", [](const PyTokenBytes& self) { return self.table.size(); })
      .def("__getitem__", [](const PyTokenBytes& self, nb::handle item) {
        const int64_t id = token_id(item);
        self.table.check(id);
        const std::string_view bytes = self.table.bytes(id);
        return nb::bytes(bytes.data(), bytes.size());
      })
      .def(
          "join",
          [](const PyTokenBytes& self, nb::handle ids, bool skip_special) {
            const std::string bytes = self.join(ids, skip_special);
            return nb::bytes(bytes.data(), bytes.size());
          },
          "ids"_a, "skip_special"_a)
      .def(
          "decode",
          [](const PyTokenBytes& self, nb::handle ids, bool skip_special) {
            return decode_replace(self.join(ids, skip_special));
          },
          "ids"_a, "skip_special"_a);

  nb::class_<DecodeStream>(m, "DecodeStream")
      .def(nb::init<std::shared_ptr<PyTokenBytes>, nb::handle, bool>(), "tokens"_a, "prompt_ids"_a, "skip_special"_a)
      .def("step", &DecodeStream::step, "token_id"_a)
      .def("feed", &DecodeStream::feed, "ids"_a)
      .def("flush", &DecodeStream::flush)
      .def_prop_ro("pending", &DecodeStream::pending)
      .def(nb::init<const DecodeStream&>(), "other"_a)
      .def("reset", &DecodeStream::reset, "prompt_ids"_a = nb::make_tuple());
}

}  // namespace tokenweir
