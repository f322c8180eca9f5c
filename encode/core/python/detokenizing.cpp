// IdSet, JsonValue, PendingIds, StopStrings and Detokenizer as Python sees them.

#include "python/bindings.h"
#include <limits>
#include <tuple>

#include "stream/detokenizer.h"
#include "stream/id_set.h"
#include "stream/json_value.h"
#include "python/decoding.h"
#include "stream/stop_strings.h"

namespace tokenweir {

namespace {

// Bytes of the first `characters` of a text.
size_t bytes_of(std::string_view text, size_t characters) {
  size_t at = 0;
  for (; characters > 0 && at < text.size(); characters--) at += utf8_length(static_cast<uint8_t>(text[at]));
  return at;
}

// Takes text from character `start` on; returns the place after the last one taken.
size_t feed(JsonValue& value, nb::handle text, size_t start) {
  const std::string_view bytes = utf8(text);
  const size_t from = bytes_of(bytes, start), taken = value.feed(bytes.substr(from));
  for (size_t at = from; at < from + taken; at += utf8_length(static_cast<uint8_t>(bytes[at]))) start++;
  return start;
}

std::optional<std::string> error_of(const JsonValue& value) {
  switch (value.failure()) {
    case JsonValue::Failure::kNone:
      return {};
    case JsonValue::Failure::kCharacter:
      return nb::cast<std::string>(nb::repr(text_object(value.wrong()))) + " cannot stand here in " + value.where();
    case JsonValue::Failure::kDepth:
      return "the JSON is nested more than " + std::to_string(JsonValue::kMaxDepth) + " levels deep";
    default:
      return "the JSON is not closed";
  }
}

size_t unlimited(std::optional<size_t> limit) { return limit.value_or(std::numeric_limits<size_t>::max()); }

// An object of a state as bytes.
template <class Save>
nb::bytes saved(Save&& save) {
  Saver to;
  save(to);
  return nb::bytes(to.bytes().data(), to.bytes().size());
}

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

using PendingObjects = PendingIds<nb::object>;

// The ids that have become ready.
nb::list taken(PendingObjects& pending) {
  const size_t n = pending.ready();
  nb::object ids = nb::steal(PyList_New(static_cast<Py_ssize_t>(n)));
  if (!ids.is_valid()) throw nb::python_error();
  for (size_t i = 0; i < n; i++) PyList_SetItem(ids.ptr(), static_cast<Py_ssize_t>(i), pending.take().release().ptr());
  return nb::borrow<nb::list>(ids);
}

// Ids that end with a text, the last of them with its last byte.
void add(PendingObjects& pending, nb::handle ids, nb::handle text, bool whole) {
  size_t length = utf8(text).size();
  pending.extend(length);
  for (nb::handle id : ids) pending.add_at_end(nb::borrow(id), length > 0 && whole);
}

// A text that goes out, in pieces: one for each place in it where ids end.
nb::list cut(PendingObjects& pending, nb::handle text) {
  std::string_view rest = utf8(text);
  nb::list pieces;
  while (!rest.empty()) {
    size_t length = pending.next_end(pending.sent() + rest.size()) - pending.sent();
    while (length < rest.size() && utf8_continues(static_cast<uint8_t>(rest[length]))) length++;
    pending.send(length);
    pieces.append(nb::make_tuple(taken(pending), text_object(rest.substr(0, length))));
    rest.remove_prefix(length);
  }
  return pieces;
}

class PyDetokenizer {
 public:
  PyDetokenizer(std::shared_ptr<PyTokenBytes> tokens, nb::handle prompt_ids, bool skip_special, bool whole_runs,
                const StopStrings& stops, std::vector<int64_t> ends, nb::dict shown, bool splits, size_t min_tokens,
                std::optional<size_t> limit)
      : tokens_(std::move(tokens)),
        core_(after_prompt(tokens_->table, DecodeState(tokens_->table, skip_special, whole_runs), prompt_ids), stops,
              std::make_shared<AnswerRules>(std::move(ends), texts(shown), splits, min_tokens), unlimited(limit)) {}

  void let_pass(nb::object until, const JsonValue* scanner, bool held) {
    if (until.is_none()) return core_.let_pass({});
    core_.let_pass(Passage(utf8(until), scanner ? std::optional<JsonValue>(*scanner) : std::nullopt, held));
  }

  void enter(bool search, bool drop) { core_.enter(search, drop); }

  nb::tuple feed(nb::list ids, size_t place) {
    const size_t from = place;
    std::string sent, next;
    bool stirred;
    std::tie(place, stirred) = core_.feed(
        place, ids.size(),
        [&](size_t i) {
          PyObject* id = item(ids, i);
          return PyLong_CheckExact(id) ? integer(id).value_or(-1) : -1;
        },
        [&](size_t i) { return nb::borrow(item(ids, i)); }, sent, next);
    nb::object text = place == from + 1 && !stirred ? text_of(sent, item(ids, from)) : text_object(sent);
    nb::object given = stirred ? text_of(next, item(ids, place - 1)) : nb::none();
    return nb::make_tuple(std::move(text), taken(), place, std::move(given));
  }

  nb::object step(nb::handle item) {
    const int64_t id = token_id(item);
    tokens_->table.check(id);
    std::string next;
    core_.step(nb::borrow(item), static_cast<size_t>(id), next);
    return text_object(next);
  }

  void skip(nb::handle token_id) { core_.skip(nb::borrow(token_id)); }

  nb::object unseen() { return text_object(core_.unseen()); }

  nb::object flush() {
    std::string next;
    core_.flush(next);
    return text_object(next);
  }

  nb::tuple send(nb::handle text) {
    std::string sent;
    core_.send(utf8(text), sent);
    return nb::make_tuple(text_object(sent), taken());
  }

  nb::tuple release() {
    std::string sent;
    core_.release(sent);
    return nb::make_tuple(text_object(sent), taken());
  }

  nb::list take(nb::handle text) {
    core_.take(utf8(text).size());
    return taken();
  }

  void drop(nb::handle text) { core_.drop(utf8(text).size()); }

  nb::list finish() {
    core_.finish();
    return taken();
  }

  nb::bytes state() const {
    return saved([this](Saver& to) { core_.save(to, [](const nb::object& id) { return static_cast<uint64_t>(*integer(id)); }); });
  }

  void restore(const nb::bytes& state) {
    Loader from(view(state));
    Detokenizer<nb::object> core = core_;
    core.load(from, [](size_t id) { return nb::object(nb::int_(id)); });
    from.end();
    core_ = std::move(core);
  }

  void set_limit(std::optional<size_t> limit) { core_.set_limit(unlimited(limit)); }
  size_t count() const { return core_.count(); }
  size_t passed() { return core_.pending().passed(); }
  bool holds() const { return !core_.stops().held().empty(); }
  const std::string* matched() const { return core_.stops().matched(); }

 private:
  static PyObject* item(const nb::list& ids, size_t i) { return PyList_GetItem(ids.ptr(), static_cast<Py_ssize_t>(i)); }

  static std::unordered_map<int64_t, std::string> texts(const nb::dict& shown) {
    std::unordered_map<int64_t, std::string> texts;
    for (const auto& [id, text] : shown) texts.emplace(token_id(id), utf8(text));
    return texts;
  }

  // The text of one id, which most often is an object already.
  nb::object text_of(std::string_view text, PyObject* item) {
    const size_t id = static_cast<size_t>(*integer(item));
    if (tokens_->table.content(id) == text)
      if (PyObject* object = tokens_->text(id)) return nb::steal(object);
    return text_object(text);
  }

  nb::list taken() { return tokenweir::taken(core_.pending()); }

  std::shared_ptr<PyTokenBytes> tokens_;
  Detokenizer<nb::object> core_;
};

}  // namespace

void bind_detokenizing(nb::module_& m) {
  nb::class_<IdSet>(m, "IdSet")
      .def(nb::init<std::vector<int64_t>>(), "ids"_a)
      .def(
          "last_in",
          [](const IdSet& self, nb::handle sequence) -> std::optional<size_t> {
            const Ids ids(sequence);
            for (size_t place = ids.size(); place > 0; place--)
              if (self.contains(ids[place - 1])) return place - 1;
            return {};
          },
          "ids"_a);

  nb::class_<JsonValue>(m, "JsonValue")
      .def(nb::init<>())
      .def_prop_ro("done", &JsonValue::done)
      .def_prop_ro("error", &error_of)
      .def("feed", &feed, "text"_a, "start"_a = 0)
      .def("finish", &JsonValue::finish)
      .def("copy", [](const JsonValue& self) { return JsonValue(self); })
      .def("state", [](const JsonValue& self) { return saved([&](Saver& to) { self.save(to); }); })
      .def(
          "restore",
          [](JsonValue& self, const nb::bytes& state) {
            Loader from(view(state));
            JsonValue value = JsonValue::load(from);
            from.end();
            self = std::move(value);
          },
          "state"_a);

  nb::class_<PendingObjects>(m, "PendingIds")
      .def(nb::init<>())
      .def("add", &add, "ids"_a, "text"_a, "whole"_a = true)
      .def(
          "take",
          [](PendingObjects& self, nb::handle text) {
            self.drop(utf8(text).size());
            self.release();
            return taken(self);
          },
          "text"_a)
      .def("cut", &cut, "text"_a)
      .def("rest", [](PendingObjects& self) {
        self.finish();
        return taken(self);
      });

  nb::class_<StopStrings>(m, "StopStrings")
      .def(
          "__init__",
          [](StopStrings* self, nb::handle stops, bool include) {
            std::vector<std::string> texts;
            for (nb::handle stop : stops) texts.emplace_back(utf8(stop, "stop string " + std::to_string(texts.size())));
            new (self) StopStrings(std::make_shared<StopAutomaton>(std::move(texts)), include);
          },
          "stops"_a, "include"_a = false)
      .def(nb::init<const StopStrings&>(), "other"_a)
      .def_prop_ro("matched", &StopStrings::matched)
      .def_prop_ro("held", [](const StopStrings& self) { return text_object(self.held()); })
      .def(
          "take",
          [](StopStrings& self, nb::handle text, size_t ignore) {
            const std::string_view bytes = utf8(text);
            std::string sent;
            self.take(bytes, bytes_of(bytes, ignore), sent);
            return text_object(sent);
          },
          "text"_a, "ignore"_a = 0)
      .def("flush", [](StopStrings& self) {
        std::string held;
        self.flush(held);
        return text_object(held);
      });

  nb::class_<PyDetokenizer>(m, "Detokenizer")
      .def(nb::init<std::shared_ptr<PyTokenBytes>, nb::handle, bool, bool, const StopStrings&, std::vector<int64_t>,
                    nb::dict, bool, size_t, std::optional<size_t>>(),
           "tokens"_a, "prompt_ids"_a, "skip_special"_a, "whole_runs"_a, "stops"_a, "ends"_a, "shown"_a, "splits"_a,
           "min_tokens"_a, "limit"_a.none())
      .def("copy", [](const PyDetokenizer& self) { return PyDetokenizer(self); })
      .def("let_pass", &PyDetokenizer::let_pass, "until"_a.none(), "scanner"_a.none() = nb::none(), "held"_a = false)
      .def("enter", &PyDetokenizer::enter, "search"_a, "drop"_a)
      .def("feed", &PyDetokenizer::feed, "ids"_a, "place"_a)
      .def("step", &PyDetokenizer::step, "token_id"_a)
      .def("skip", &PyDetokenizer::skip, "token_id"_a)
      .def("unseen", &PyDetokenizer::unseen)
      .def("flush", &PyDetokenizer::flush)
      .def("send", &PyDetokenizer::send, "text"_a)
      .def("release", &PyDetokenizer::release)
      .def("take", &PyDetokenizer::take, "source"_a)
      .def("drop", &PyDetokenizer::drop, "source"_a)
      .def("finish", &PyDetokenizer::finish)
      .def("state", &PyDetokenizer::state)
      .def("restore", &PyDetokenizer::restore, "state"_a)
      .def_prop_rw("limit", nullptr, &PyDetokenizer::set_limit)
      .def_prop_ro("count", &PyDetokenizer::count)
      .def_prop_ro("passed", &PyDetokenizer::passed)
      .def_prop_ro("holds", &PyDetokenizer::holds)
      .def_prop_ro("matched", &PyDetokenizer::matched);
}

}  // namespace tokenweir
