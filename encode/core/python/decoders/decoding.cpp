// Bindings of TextStep, TokenBytes and DecodeStream.

#include "python/decoders/decoding.h"
#include "decoders/text_step.h"
#include "python/bindings.h"
#include "python/states.h"
#include "vocabulary/vocabulary.h"

namespace tokenweir {

namespace {

// A buffer that the thread reuses in its next call, to avoid page faults. Nested calls, from an id's `__index__`, get
// buffers of their own.
struct KeptBuffer {
  GrowingBuffer<char> bytes;

  KeptBuffer() {
    bytes.swap(of_thread());
    bytes.clear();
  }
  KeptBuffer(const KeptBuffer&) = delete;
  ~KeptBuffer() {
    if (bytes.capacity() <= kMost) bytes.swap(of_thread());
  }

 private:
  static constexpr size_t kMost = 4 << 20;

  static GrowingBuffer<char>& of_thread() {
    static thread_local GrowingBuffer<char> buffer;
    return buffer;
  }
};

class DecodeStream {
 public:
  DecodeStream(std::shared_ptr<PyTokenBytes> tokens, nb::handle prompt_ids, bool skip_special, bool whole_runs)
      : tokens_(std::move(tokens)),
        start_(tokens_->table, skip_special, whole_runs),
        state_(after_prompt(tokens_->table, start_, prompt_ids)) {}

  nb::object step(nb::handle item) {
    const int64_t id = token_id(item);
    tokens_->table.check(id);
    if (state_.skips(id)) return nb::str("");
    if (state_.calm())
      if (PyObject* text = tokens_->text(id)) return nb::steal(text);
    std::string text;
    state_.take(id, text);
    return text_object(text);
  }

  nb::object feed(nb::handle ids) {
    std::string text;
    for (const uint32_t id : tokens_->checked(ids)) state_.take(id, text);  // a bad id leaves the stream as it was
    return text_object(text);
  }

  nb::object flush() {
    std::string text;
    state_.flush(text);
    return text_object(text);
  }

  size_t pending() const { return state_.pending(); }

  nb::bytes state() const {
    return saved([this](Saver& to) { state_.save(to); });
  }

  // Restores the state of another stream with the same options.
  void restore(const nb::bytes& bytes) {
    state_ = loaded(bytes, [this](Loader& from) {
      DecodeState state = start_;
      state.load(from);
      return state;
    });
  }

  void reset(nb::handle prompt_ids) { state_ = after_prompt(tokens_->table, start_, prompt_ids); }

 private:
  std::shared_ptr<PyTokenBytes> tokens_;
  DecodeState start_, state_;
};

}  // namespace

void bind_decoding(nb::module_& m) {
  nb::enum_<When>(m, "When")
      .value("ALWAYS", When::kAlways)
      .value("FIRST", When::kFirst)
      .value("LATER", When::kLater)
      .value("LAST", When::kLast)
      .value("NOT_LAST", When::kNotLast);
  nb::enum_<Spelling>(m, "Spelling")
      .value("TEXT", Spelling::kText)
      .value("FALLBACK", Spelling::kFallback)
      .value("ALPHABET", Spelling::kAlphabet)
      .value("BYTES", Spelling::kBytes);
  nb::enum_<FirstUntil>(m, "FirstUntil")
      .value("TOKEN", FirstUntil::kToken)
      .value("SPACE", FirstUntil::kSpace)
      .value("TEXT", FirstUntil::kText);

  nb::class_<TextStep>(m, "TextStep")
      .def_static(
          "replace",
          [](nb::handle pattern, nb::handle content, When when) {
            return TextStep::replace(std::string(utf8(pattern)), std::string(utf8(content)), when);
          },
          "pattern"_a, "content"_a, "when"_a = When::kAlways)
      .def_static(
          "strip",
          [](nb::handle character, size_t start, size_t stop, When when) {
            return TextStep::strip(std::string(utf8(character)), start, stop, when);
          },
          "character"_a, "start"_a, "stop"_a, "when"_a = When::kAlways)
      .def_static(
          "follow", [](nb::handle prefix) { return TextStep::follow(std::string(utf8(prefix))); }, "prefix"_a)
      .def_static("join", &TextStep::join);

  nb::class_<PyTokenBytes>(m, "TokenBytes")
      .def(
          "__init__",
          [](PyTokenBytes* self, const Vocabulary& vocabulary,
             const std::vector<std::tuple<uint32_t, std::string, bool>>& added, size_t size, nb::handle token,
             Spelling spelling, nb::handle run, nb::handle text, FirstUntil first_until,
             const std::vector<std::tuple<uint32_t, nb::bytes, bool>>& fixed) {
            std::vector<std::string_view> names(std::max(size, vocabulary.size()));
            for (size_t id = 0; id < vocabulary.size(); id++) names[id] = vocabulary.ids.names()[id];
            std::vector<bool> given = vocabulary.ids.given();
            given.resize(names.size());
            std::vector<bool> special(names.size());
            for (const auto& [id, content, is_special] : added) {
              if (id >= names.size()) throw FileError("added token id " + std::to_string(id) + " is out of range");
              names[id] = content;
              given[id] = true;
              special[id] = is_special;
            }
            std::vector<FixedToken> fixed_tokens;
            for (const auto& [id, content, bytes] : fixed)
              fixed_tokens.push_back({id, std::string(content.c_str(), content.size()), bytes});
            new (self) PyTokenBytes{
                TokenBytes(decoding_of(token, spelling, run, text, first_until), names, given, special, fixed_tokens),
                ObjectCache(names.size())};
          },
          "vocabulary"_a, "added"_a, "size"_a, "token"_a, "spelling"_a, "run"_a, "text"_a, "first_until"_a, "fixed"_a)
      .def("__len__", [](const PyTokenBytes& self) { return self.table.size(); })
      .def("digest", [](const PyTokenBytes& self) { return self.table.digest(); })
      .def(
          "__getitem__",
          [](const PyTokenBytes& self, nb::handle item) {
            const int64_t id = token_id(item);
            self.table.check(id);
            const std::string_view content = self.table.content(id);
            return nb::bytes(content.data(), content.size());
          },
          nb::arg().none())
      .def(
          "join",
          [](const PyTokenBytes& self, nb::handle ids) {
            KeptBuffer kept;
            self.join(ids, false, kept.bytes);
            return nb::bytes(kept.bytes.data(), kept.bytes.size());
          },
          "ids"_a)
      .def(
          "decode",
          [](const PyTokenBytes& self, nb::handle ids, bool skip_special, bool whole_runs) {
            if (self.table.joins()) {
              KeptBuffer kept;
              self.join(ids, skip_special, kept.bytes);
              return owned(
                  PyUnicode_DecodeUTF8(kept.bytes.data(), static_cast<Py_ssize_t>(kept.bytes.size()), "replace"));
            }
            DecodeState state(self.table, skip_special, whole_runs);
            std::string text;
            self.each(ids, [&](const auto* found, size_t n) {
              for (size_t i = 0; i < n; i++) self.table.check(static_cast<int64_t>(found[i]));
              for (size_t i = 0; i < n; i++) state.take(static_cast<size_t>(found[i]), text);
            });
            state.flush(text);
            return text_object(text);
          },
          "ids"_a, "skip_special"_a, "whole_runs"_a = false);

  nb::class_<DecodeStream>(m, "DecodeStream")
      .def(nb::init<std::shared_ptr<PyTokenBytes>, nb::handle, bool, bool>(), "tokens"_a, "prompt_ids"_a.none(),
           "skip_special"_a, "whole_runs"_a = false)
      .def("step", &DecodeStream::step, "token_id"_a.none())
      .def("feed", &DecodeStream::feed, "ids"_a.none())
      .def("flush", &DecodeStream::flush)
      .def_prop_ro("pending", &DecodeStream::pending)
      .def("state", &DecodeStream::state)
      .def("restore", &DecodeStream::restore, "state"_a)
      .def(nb::init<const DecodeStream&>(), "other"_a)
      .def("reset", &DecodeStream::reset, "prompt_ids"_a = nb::make_tuple());
}

}  // namespace tokenweir
