// IdSet, JsonValue, StopStrings, AnswerText, SkippableText and Detokenizer as Python sees them.

#include <limits>
#include <tuple>
#include "python/bindings.h"

#include "chat_decoder/answer_text.h"
#include "chat_decoder/detokenizer.h"
#include "chat_decoder/id_set.h"
#include "chat_decoder/json_value.h"
#include "chat_decoder/stop_strings.h"
#include "python/decoders/decoding.h"
#include "python/states.h"

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
    case JsonValue::Failure::kNone: return {};
    case JsonValue::Failure::kCharacter:
      return nb::cast<std::string>(nb::repr(text_object(value.wrong()))) + " cannot stand here in " + value.where();
    case JsonValue::Failure::kDepth:
      return "the JSON is nested more than " + std::to_string(JsonValue::kMaxDepth) + " levels deep";
    default: return "the JSON is not closed";
  }
}

size_t unlimited(std::optional<size_t> limit) { return limit.value_or(std::numeric_limits<size_t>::max()); }

using Text = AnswerText<nb::object>;

// The ids that have become ready.
nb::list taken(Text& answer) {
  const size_t n = answer.ready();
  const nb::object ids = owned(PyList_New(static_cast<Py_ssize_t>(n)));
  for (size_t i = 0; i < n; i++)
    PyList_SetItem(ids.ptr(), static_cast<Py_ssize_t>(i), answer.take_id().release().ptr());
  return nb::borrow<nb::list>(ids);
}

// Adds ids that end with a text, the last of them with its last byte.
void add(Text& answer, nb::handle ids, nb::handle text) {
  const size_t length = utf8(text).size();
  answer.extend(length);
  for (nb::handle id : ids) answer.add_at_end(nb::borrow(id), length > 0);
}

nb::tuple gone(Text& answer, std::string& sent) {
  answer.emit(sent);
  return nb::make_tuple(text_object(sent), taken(answer));
}

nb::list gone_in_parts(Text& answer, std::string& sent) {
  nb::list parts;
  answer.emit_in_parts(sent,
                       [&](std::string_view part) { parts.append(nb::make_tuple(text_object(part), taken(answer))); });
  return parts;
}

// Final part of a returned text; for None, the text that was held.
std::string final_text(Text& answer, nb::handle text) {
  std::string sent;
  if (text.is_none())
    answer.release(sent);
  else
    answer.search(utf8(text), sent);
  return sent;
}

struct PySkippableText {
  std::shared_ptr<const SkippableText> rules;
  nb::object scanner;  // the splitter's JsonValue, which is copied, or None
};

class PyDetokenizer {
 public:
  PyDetokenizer(std::shared_ptr<PyTokenBytes> tokens, nb::handle prompt_ids, bool skip_special, bool whole_runs,
                const StopStrings& stops, std::vector<int64_t> ends, nb::dict shown, bool splits, size_t min_tokens,
                std::optional<size_t> limit, bool trims)
      : tokens_(std::move(tokens)),
        core_(after_prompt(tokens_->table, DecodeState(tokens_->table, skip_special, whole_runs), prompt_ids),
              Text(std::make_shared<StopStrings>(stops), min_tokens, trims),
              std::make_shared<AnswerRules>(std::move(ends), texts(shown), splits), unlimited(limit)) {}

  void allow_skip(const PySkippableText* skippable) {
    if (skippable == nullptr) return core_.allow_skip({});
    if (skippable->scanner.is_none()) return core_.allow_skip(skippable->rules);
    core_.allow_skip(skippable->rules, nb::cast<JsonValue>(skippable->scanner));
  }

  nb::tuple feed(nb::list ids, size_t place) {
    const size_t from = place;
    std::string sent, next;
    Detokenizer<nb::object>::Fed fed;
    std::tie(place, fed) = core_.feed(
        place, ids.size(),
        [&](size_t i) {
          PyObject* id = item(ids, i);
          return PyLong_CheckExact(id) ? integer(id).value_or(-1) : -1;
        },
        [&](size_t i) { return nb::borrow(item(ids, i)); }, sent, next);
    const bool passed = fed == Detokenizer<nb::object>::Fed::kPassed, tag = fed == Detokenizer<nb::object>::Fed::kTag;
    nb::object text = place == from + 1 && passed ? text_of(sent, item(ids, from)) : text_object(sent);
    nb::object last = passed ? nb::none() : nb::object(nb::make_tuple(text_of(next, item(ids, place - 1)), tag));
    return nb::make_tuple(std::move(text), taken(core_.answer()), place, std::move(last));
  }

  nb::object step(nb::handle item, nb::handle hidden) {
    const int64_t id = token_id(item);
    tokens_->table.check(id);
    std::string next;
    core_.step(nb::borrow(item), static_cast<size_t>(id), next, utf8(hidden));
    return text_object(next);
  }

  nb::object unseen() { return text_object(core_.unseen()); }

  nb::object flush() {
    std::string next;
    core_.flush(next);
    return text_object(next);
  }

  nb::bytes state() const {
    return saved([this](Saver& to) {
      core_.save(to, [](const nb::object& id) { return static_cast<uint64_t>(*integer(id)); });
    });
  }

  void restore(const nb::bytes& state) {
    core_ = loaded(state, [this](Loader& from) {
      Detokenizer<nb::object> core = core_;
      core.load(from, [](size_t id) { return nb::object(nb::int_(id)); });
      return core;
    });
  }

  void set_limit(std::optional<size_t> limit) { core_.set_limit(unlimited(limit)); }
  Text& answer() { return core_.answer(); }

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
          "restore", [](JsonValue& self, const nb::bytes& state) { self = loaded(state, JsonValue::load); }, "state"_a);

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

  nb::class_<Text>(m, "AnswerText")
      .def(
          "__init__",
          [](Text* self, std::shared_ptr<StopStrings> stops, bool trims) {
            new (self) Text(std::move(stops), 0, trims);
          },
          "stops"_a, "trims"_a = false)
      .def("enter", &Text::enter, "search"_a, "drop"_a, "call"_a = false)
      .def("begin_block", &Text::begin_block)
      .def("end_block", &Text::end_block, "anywhere"_a)
      .def("record", &Text::record)
      .def("take_in_text",
           [](Text& self) {
             const std::string flags = std::exchange(self.in_text(), {});
             nb::list in_text;
             for (const char flag : flags) in_text.append(flag != 0);
             return in_text;
           })
      .def("add", &add, "ids"_a, "text"_a)
      .def(
          "send",
          [](Text& self, nb::handle text) {
            std::string sent = final_text(self, text);
            return gone(self, sent);
          },
          "text"_a.none())
      .def(
          "send_in_parts",
          [](Text& self, nb::handle text) {
            std::string sent = final_text(self, text);
            return gone_in_parts(self, sent);
          },
          "text"_a.none())
      .def(
          "take",
          [](Text& self, nb::handle source) {
            self.take(utf8(source).size());
            return taken(self);
          },
          "source"_a)
      .def(
          "drop", [](Text& self, nb::handle source) { self.drop(utf8(source).size()); }, "source"_a)
      .def("finish",
           [](Text& self) {
             self.finish();
             return taken(self);
           })
      .def_prop_ro("count", &Text::ids)
      .def_prop_ro("kept", &Text::kept)
      .def_prop_ro("recorded", [](Text& self) { return self.in_text().size(); })
      .def_prop_ro("awaited", &Text::awaited)
      .def("think", &Text::think, "on"_a)
      .def_prop_ro("thinks", &Text::thinks)
      .def_prop_ro("thinking", &Text::thinking)
      .def_prop_ro("thought", &Text::thought)
      .def_prop_ro("stop_begun", [](const Text& self) { return self.stops().begun(); })
      .def_prop_ro("matched", [](const Text& self) { return self.stops().matched(); });

  nb::class_<PySkippableText>(m, "SkippableText")
      .def(
          "__init__",
          [](PySkippableText* self, nb::handle until, nb::object scanner, bool held, std::vector<std::string> tags,
             std::vector<std::string> line_tags, std::vector<std::string> openers, std::vector<std::string> closers,
             bool bare, std::string line_until) {
            if (!scanner.is_none()) nb::cast<const JsonValue*>(scanner);
            SkippableText::Tags all{std::move(tags), std::move(line_tags), std::move(openers), std::move(closers)};
            std::optional<std::string> chars;
            if (!until.is_none()) chars = utf8(until);
            auto rules = std::make_shared<const SkippableText>(std::move(chars), held, std::move(all), bare,
                                                               std::move(line_until));
            new (self) PySkippableText{std::move(rules), std::move(scanner)};
          },
          "until"_a.none(), "scanner"_a.none() = nb::none(), "held"_a = false, "tags"_a = std::vector<std::string>(),
          "line_tags"_a = std::vector<std::string>(), "openers"_a = std::vector<std::string>(),
          "closers"_a = std::vector<std::string>(), "bare"_a = false, "line_until"_a = "")
      .def_prop_ro("until", [](const PySkippableText& self) { return self.rules->until; })
      .def_prop_ro("tags", [](const PySkippableText& self) { return self.rules->tags.anywhere; })
      .def_prop_ro("line_tags", [](const PySkippableText& self) { return self.rules->tags.line; })
      .def_prop_ro("openers", [](const PySkippableText& self) { return self.rules->tags.openers; })
      .def_prop_ro("closers", [](const PySkippableText& self) { return self.rules->tags.closers; })
      .def_prop_ro("bare", [](const PySkippableText& self) { return self.rules->bare; })
      .def_prop_ro("line_until", [](const PySkippableText& self) { return self.rules->line_until; })
      .def_ro("scanner", &PySkippableText::scanner)
      .def_prop_ro("held", [](const PySkippableText& self) { return self.rules->held; });

  nb::class_<PyDetokenizer>(m, "Detokenizer")
      .def(nb::init<std::shared_ptr<PyTokenBytes>, nb::handle, bool, bool, const StopStrings&, std::vector<int64_t>,
                    nb::dict, bool, size_t, std::optional<size_t>, bool>(),
           "tokens"_a, "prompt_ids"_a, "skip_special"_a, "whole_runs"_a, "stops"_a, "ends"_a, "shown"_a, "splits"_a,
           "min_tokens"_a, "limit"_a.none(), "trims"_a = false)
      .def("copy", [](const PyDetokenizer& self) { return PyDetokenizer(self); })
      .def("allow_skip", &PyDetokenizer::allow_skip, "skippable"_a.none())
      .def("feed", &PyDetokenizer::feed, "ids"_a, "place"_a)
      .def("step", &PyDetokenizer::step, "token_id"_a, "hidden"_a = "")
      .def("unseen", &PyDetokenizer::unseen)
      .def("flush", &PyDetokenizer::flush)
      .def("state", &PyDetokenizer::state)
      .def("restore", &PyDetokenizer::restore, "state"_a)
      .def_prop_rw("limit", nullptr, &PyDetokenizer::set_limit)
      .def_prop_ro("answer", &PyDetokenizer::answer, nb::rv_policy::reference_internal);
}

}  // namespace tokenweir
