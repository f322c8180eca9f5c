// The Python face of the core: bindings and nothing else. encode/_core.pyi documents what is here.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "batch.h"
#include "decoder.h"
#include "encoder.h"
#include "merge_reader.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace tokenweir;

namespace {

// -- errors and text ---------------------------------------------------------------------------------------------------

[[noreturn]] void raise(const char* name, const std::string& message) {
  PyErr_SetString(nb::module_::import_("tokenweir.encode.errors").attr(name).ptr(), message.c_str());
  throw nb::python_error();
}

// The UTF-8 form of a str, which owns it. `where` names the text in errors.
std::string_view utf8(nb::handle text, const std::string& where = "text") {
  if (!PyUnicode_Check(text.ptr()))
    throw nb::type_error((where + " must be str, not " + nb::type_name(text.type()).c_str()).c_str());
  Py_ssize_t size;
  if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {data, static_cast<size_t>(size)};
  nb::python_error error;
  if (!error.matches(PyExc_UnicodeEncodeError)) throw error;
  const auto at = nb::cast<size_t>(error.value().attr("start"));
  char message[96];
  std::snprintf(message, sizeof message, " has a lone surrogate U+%04X at character %zu",
                static_cast<unsigned>(PyUnicode_ReadChar(text.ptr(), static_cast<Py_ssize_t>(at))), at);
  raise("TextError", where + message);
}

// Byte offsets of ascending character offsets.
std::vector<size_t> byte_offsets(std::string_view text, const std::vector<size_t>& characters) {
  std::vector<size_t> bytes;
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  size_t at = 0, character = 0;
  for (const size_t wanted : characters) {
    if (wanted < character) throw nb::value_error("guarded offsets must ascend");
    for (; character < wanted && at < text.size(); character++) at += utf8_length(p[at]);
    if (at == text.size()) throw nb::value_error("a guarded offset is past the end of the text");
    bytes.push_back(at);
  }
  return bytes;
}

// Runs `work` without the GIL if the text is long enough to pay for the switch.
template <class Work>
void unlocked(size_t bytes, Work&& work) {
  if (bytes < 4096) return work();
  nb::gil_scoped_release release;
  work();
}

// -- arrays and lists --------------------------------------------------------------------------------------------------

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::unique_ptr<T[]> data, std::initializer_list<size_t> shape) {
  T* p = data.get();
  nb::capsule owner(data.release(), [](void* q) noexcept { delete[] static_cast<T*>(q); });
  return nb::ndarray<nb::numpy, T>(p, shape, owner);
}

nb::ndarray<nb::numpy, int32_t> to_numpy(const int32_t* ids, size_t n) {
  std::unique_ptr<int32_t[]> copy(new int32_t[n]);
  std::copy(ids, ids + n, copy.get());
  return to_numpy(std::move(copy), {n});
}

// Python objects by id, made when first asked for: a list of ids then costs a reference each, not an object.
class ObjectCache {
 public:
  explicit ObjectCache(size_t size) : objects_(size) {}
  ObjectCache(const ObjectCache&) = delete;
  ~ObjectCache() {
    for (PyObject* object : objects_) Py_XDECREF(object);
  }

  // A new reference; `make` is called once an id.
  template <class Make>
  PyObject* get(size_t id, Make&& make) {
    PyObject*& object = objects_[id];
    if (!object && !(object = make())) throw nb::python_error();
    Py_INCREF(object);
    return object;
  }

 private:
  std::vector<PyObject*> objects_;
};

template <class Use>
void for_each_id(nb::handle ids, Use&& use) {
  nb::object sequence = nb::steal(PySequence_Fast(ids.ptr(), "ids must be a sequence of integers"));
  if (!sequence.is_valid()) throw nb::python_error();
  const Py_ssize_t n = PySequence_Size(sequence.ptr());
  const bool list = PyList_Check(sequence.ptr());
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* item = list ? PyList_GetItem(sequence.ptr(), i) : PyTuple_GetItem(sequence.ptr(), i);
    if (!item) throw nb::python_error();
    const long long id = PyLong_AsLongLong(item);
    if (id == -1 && PyErr_Occurred()) {
      if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        throw BadTokenId("token id " + nb::cast<std::string>(nb::str(item)) + " is outside the vocabulary");
      }
      throw nb::python_error();
    }
    use(id);
  }
}

// -- the classes that Python sees --------------------------------------------------------------------------------------

using Table16 = nb::ndarray<const uint16_t, nb::c_contig, nb::device::cpu>;
using Table8 = nb::ndarray<const uint8_t, nb::c_contig, nb::device::cpu>;

template <class T, class Array>
std::vector<T> values(const Array& array) {
  return std::vector<T>(array.data(), array.data() + array.size());
}

struct PyEncoder {
  Encoder encoder;
  ObjectCache ints;

  struct Call {
    const PyEncoder& self;
    std::string_view text;
    EncodeOptions options;
    std::unique_ptr<Workspace> w;

    Call(const PyEncoder& self, nb::handle source, bool parse_special, const std::vector<size_t>& guarded)
        : self(self), text(utf8(source)), options{parse_special, byte_offsets(text, guarded)} {
      w = self.encoder.pool().take();
      w->ids.clear();
      w->spans.clear();
    }
    ~Call() { self.encoder.pool().give_back(std::move(w)); }

    template <bool Spans>
    void run() {
      unlocked(text.size(), [&] { self.encoder.encode<Spans>(text, options, *w); });
    }
  };

  nb::list to_list(const IdBuffer& ids) {
    nb::list list = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(ids.size())));
    for (size_t i = 0; i < ids.size(); i++) {
      const int32_t id = ids.data()[i];
      PyList_SetItem(list.ptr(), static_cast<Py_ssize_t>(i), ints.get(id, [&] { return PyLong_FromLong(id); }));
    }
    return list;
  }
};

// Character offsets of spans; a byte inside a character counts to the whole of it.
nb::ndarray<nb::numpy, int64_t> character_offsets(std::string_view text, const std::vector<Span>& spans) {
  std::vector<uint32_t> character(text.size() + 1);  // of the byte there
  const auto* p = reinterpret_cast<const uint8_t*>(text.data());
  uint32_t next = 0;
  for (size_t i = 0; i < text.size(); i++) character[i] = utf8_continues(p[i]) ? next - 1 : next++;
  character[text.size()] = next;
  std::unique_ptr<int64_t[]> offsets(new int64_t[2 * spans.size()]);
  for (size_t i = 0; i < spans.size(); i++) {
    offsets[2 * i] = character[spans[i].start];
    offsets[2 * i + 1] = spans[i].end > spans[i].start ? character[spans[i].end - 1] + 1 : character[spans[i].end];
  }
  return to_numpy(std::move(offsets), {spans.size(), 2});
}

struct PyTokenBytes {
  TokenBytes table;
  ObjectCache strings;  // of tokens that are whole characters; None for the others

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

nb::object decode_replace(const std::string& bytes) {
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

  nb::object step(int64_t id) {
    const TokenBytes& table = tokens_->table;
    table.check(id);
    if (skip_special_ && table.special(id)) return nb::str("");
    if (held_.empty())
      if (PyObject* text = tokens_->text(id)) return nb::steal(text);
    held_ += table.bytes(id);
    return take();
  }

  nb::object feed(nb::handle ids) {
    std::string bytes;  // a bad id leaves the stream as it was
    collect(ids, bytes);
    held_ += bytes;
    return take();
  }

  nb::object flush() {
    nb::object text = decode_replace(held_);
    held_.clear();
    return text;
  }

  // Bytes of a character that has not ended: which id a character's last byte came from depends on it.
  size_t pending() const { return held_.size(); }

  // Only the prompt's last character can be unfinished, so its last three bytes tell everything.
  void reset(nb::handle prompt_ids) {
    std::string bytes;
    collect(prompt_ids, bytes);
    held_ = bytes.substr(bytes.size() - std::min<size_t>(bytes.size(), 3));
    while (!held_.empty() && utf8_continues(static_cast<uint8_t>(held_[0]))) held_.erase(0, 1);
    take();
  }

 private:
  void collect(nb::handle ids, std::string& bytes) const {
    const TokenBytes& table = tokens_->table;
    for_each_id(ids, [&](int64_t id) {
      table.check(id);
      if (!(skip_special_ && table.special(id))) bytes += table.bytes(id);
    });
  }

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

}  // namespace

NB_MODULE(_core, m) {
  nb::set_leak_warnings(false);  // objects alive when the interpreter ends are not leaks
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const FileError& e) {
      PyErr_SetString(nb::module_::import_("tokenweir.encode.errors").attr("TokenizerFileError").ptr(), e.what());
    } catch (const Unsupported& e) {
      PyErr_SetString(nb::module_::import_("tokenweir.encode.errors").attr("UnsupportedTokenizerError").ptr(), e.what());
    } catch (const BadTokenId& e) {
      PyErr_SetString(nb::module_::import_("tokenweir.encode.errors").attr("TokenIdError").ptr(), e.what());
    }
  });

  m.def("nfc", [](nb::handle source) {
    const std::string_view text = utf8(source);
    std::string out;
    nfc(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, nullptr);
    return out;
  });
  m.def("nfc_with_origin", [](nb::handle source) {
    const std::string_view text = utf8(source);
    std::string out;
    std::vector<Span> origin;
    nfc(reinterpret_cast<const uint8_t*>(text.data()), text.size(), out, &origin);
    return nb::make_tuple(out, character_offsets(text, origin));
  });

  nb::class_<PreTokenizer>(m, "PreTokenizer")
      .def(
          "__init__",
          [](PreTokenizer* self, const std::vector<std::tuple<Table16, Table16, Table8, size_t, bool>>& stages,
             bool prefix_space) {
            std::vector<Stage> built;
            for (const auto& [transitions, index, pages, n_classes, keep_gaps] : stages)
              built.emplace_back(values<uint16_t>(transitions), values<uint16_t>(index), values<uint8_t>(pages),
                                 n_classes, keep_gaps);
            new (self) PreTokenizer(std::move(built), prefix_space);
          },
          "stages"_a, "prefix_space"_a = false)
      .def("split", [](const PreTokenizer& self, nb::handle source) {
        const std::string_view text = utf8(source);
        const auto* p = reinterpret_cast<const uint8_t*>(text.data());
        std::vector<Span> pieces;
        self.split(p, p + text.size(), [&](const uint8_t* b, const uint8_t* e) {
          pieces.push_back({static_cast<size_t>(b - p), static_cast<size_t>(e - p)});
        });
        return character_offsets(text, pieces);
      });

  nb::class_<Vocabulary>(m, "Vocabulary")
      .def_static("byte_level", [](nb::dict tokens) {
        Vocabulary vocabulary(true);
        for (auto [name, id] : tokens) vocabulary.add(utf8(name, "a token"), nb::cast<int64_t>(id));
        return vocabulary;
      })
      .def_static("ranks", [](nb::dict tokens) {
        Vocabulary vocabulary(false);
        for (auto [name, id] : tokens) {
          const auto bytes = nb::cast<nb::bytes>(name);
          vocabulary.add({bytes.c_str(), bytes.size()}, nb::cast<int64_t>(id));
        }
        return vocabulary;
      })
      .def("__len__", [](const Vocabulary& self) { return self.names.size(); });

  nb::class_<Bpe>(m, "Bpe")
      .def_static(
          "merges",
          [](const Vocabulary& vocabulary, nb::list merges, bool whole_first, const std::vector<uint32_t>& control) {
            auto bpe = std::make_shared<Bpe>(vocabulary, whole_first);
            MergeReader reader(vocabulary);
            for (nb::handle merge : merges) {
              if (PyUnicode_Check(merge.ptr())) {
                reader.add(utf8(merge, "a merge"));
              } else {
                const auto pair = nb::cast<nb::sequence>(merge);
                if (nb::len(pair) != 2) throw FileError("merge " + std::to_string(reader.size()) + " is not a pair");
                reader.add(utf8(nb::object(pair[0]), "a merge"), utf8(nb::object(pair[1]), "a merge"));
              }
            }
            bpe->set_merges(reader.merges());
            bpe->set_control(control);
            return bpe;
          },
          "vocabulary"_a, "merges"_a, "whole_first"_a, "control"_a)
      .def_static(
          "ranks",
          [](const Vocabulary& vocabulary, const std::vector<uint32_t>& control) {
            auto bpe = std::make_shared<Bpe>(vocabulary, true);
            bpe->set_ranks();
            bpe->set_control(control);
            return bpe;
          },
          "vocabulary"_a, "control"_a);

  nb::class_<AddedTokens>(m, "AddedTokens")
      .def(
          "__init__",
          [](AddedTokens* self, const std::vector<std::tuple<std::string, uint32_t, bool, bool, bool>>& tokens,
             const std::vector<uint32_t>& word_flips) {
            std::vector<AddedToken> built;
            for (const auto& [content, id, single_word, lstrip, rstrip] : tokens)
              built.push_back({content, id, single_word, lstrip, rstrip});
            new (self) AddedTokens(std::move(built), {word_flips});
          },
          "tokens"_a, "word_flips"_a);

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
      .def("__getitem__", [](const PyTokenBytes& self, int64_t id) {
        self.table.check(id);
        const std::string_view bytes = self.table.bytes(id);
        return nb::bytes(bytes.data(), bytes.size());
      })
      .def(
          "join",
          [](const PyTokenBytes& self, nb::handle ids, bool skip_special) {
            std::string bytes;
            for_each_id(ids, [&](int64_t id) {
              self.table.check(id);
              if (!(skip_special && self.table.special(id))) bytes += self.table.bytes(id);
            });
            return nb::bytes(bytes.data(), bytes.size());
          },
          "ids"_a, "skip_special"_a)
      .def(
          "decode",
          [](const PyTokenBytes& self, nb::handle ids, bool skip_special) {
            std::string bytes;
            for_each_id(ids, [&](int64_t id) {
              self.table.check(id);
              if (!(skip_special && self.table.special(id))) bytes += self.table.bytes(id);
            });
            return decode_replace(bytes);
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

  nb::class_<PyEncoder>(m, "Encoder")
      .def(
          "__init__",
          [](PyEncoder* self, std::shared_ptr<PreTokenizer> pre_tokenizer, std::shared_ptr<Bpe> model,
             const AddedTokens& raw, const AddedTokens& normalized, bool nfc, const PyTokenBytes& tokens) {
            std::vector<uint32_t> lengths;
            for (size_t id = 0; id < tokens.table.size(); id++)
              lengths.push_back(static_cast<uint32_t>(tokens.table.bytes(id).size()));
            const size_t n = lengths.size();
            new (self) PyEncoder{
                Encoder(std::move(pre_tokenizer), std::move(model), raw, normalized, nfc, std::move(lengths)),
                ObjectCache(n)};
          },
          "pre_tokenizer"_a, "model"_a, "raw"_a, "normalized"_a, "nfc"_a, "tokens"_a)
      .def(
          "encode",
          [](PyEncoder& self, nb::handle text, bool parse_special, const std::vector<size_t>& guarded) {
            PyEncoder::Call call(self, text, parse_special, guarded);
            call.run<false>();
            return self.to_list(call.w->ids);
          },
          "text"_a, "parse_special"_a, "guarded"_a)
      .def(
          "encode_array",
          [](PyEncoder& self, nb::handle text, bool parse_special, const std::vector<size_t>& guarded) {
            PyEncoder::Call call(self, text, parse_special, guarded);
            call.run<false>();
            return to_numpy(call.w->ids.data(), call.w->ids.size());
          },
          "text"_a, "parse_special"_a, "guarded"_a)
      .def(
          "encode_with_offsets",
          [](PyEncoder& self, nb::handle text, bool parse_special, const std::vector<size_t>& guarded) {
            PyEncoder::Call call(self, text, parse_special, guarded);
            call.run<true>();
            return nb::make_tuple(self.to_list(call.w->ids), character_offsets(call.text, call.w->spans));
          },
          "text"_a, "parse_special"_a, "guarded"_a)
      .def(
          "count",
          [](PyEncoder& self, nb::handle text, bool parse_special, const std::vector<size_t>& guarded) {
            PyEncoder::Call call(self, text, parse_special, guarded);
            call.run<false>();
            return call.w->ids.size();
          },
          "text"_a, "parse_special"_a, "guarded"_a)
      .def(
          "encode_batch",
          [](PyEncoder& self, nb::list texts, bool parse_special, size_t threads, const std::vector<int32_t>& prefix,
             const std::vector<int32_t>& suffix) {
            std::vector<std::string_view> views;
            for (nb::handle text : texts) views.push_back(utf8(text, "texts[" + std::to_string(views.size()) + "]"));
            Batch batch(self.encoder, views, parse_special, prefix, suffix);
            {
              nb::gil_scoped_release release;
              batch.run(threads);
            }
            const size_t total = batch.total(), n = views.size() + 1;
            return nb::make_tuple(to_numpy(batch.take_ids(), {total}), to_numpy(batch.take_offsets(), {n}));
          },
          "texts"_a, "parse_special"_a, "threads"_a, "prefix"_a, "suffix"_a);
}
