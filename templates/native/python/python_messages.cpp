// The classes Messages, GrowingMessages and MessageForm of the compiled module, and `Template.render_chat`.
#include "input/chat_messages.h"
#include "input/history.h"
#include "input/message_checks.h"
#include "input/message_forms.h"
#include "input/messages.h"
#include "python/known_objects.h"
#include "python/python_binding.h"

namespace tokenweir::templates {
namespace {

// Messages with the objects whose text they use. Destroyed with the GIL, as all Python objects are.
struct PyMessages {
  std::shared_ptr<Messages> messages;
  std::unique_ptr<PythonInput> input;    // holds strings
  nb::object held;                       // the bytes of JSON
  nb::object digests;                    // once they were asked for
  std::vector<uint64_t> text_digests{};  // of the first messages, or all
};

// The messages of a list that grows, of which each is read once.
struct PyGrowingMessages : PyMessages {
  KnownObjects known;  // of which the messages were read
  List* list = nullptr;
};

void read_objects(PyMessages& self, nb::handle messages) {
  auto read = std::make_shared<Messages>();
  auto input = std::make_unique<PythonInput>(read->workspace(), read->origins());
  translated("", [&] { read->set(input->mappings(messages.ptr(), read->root())); });
  new (&self) PyMessages{std::move(read), std::move(input), nb::object(), nb::object()};
}

// Begins with no messages.
void begin(PyGrowingMessages& self) {
  auto read = std::make_shared<Messages>();
  auto input = std::make_unique<PythonInput>(read->workspace(), read->origins());
  self.list = List::make(read->workspace(), 16);
  read->set(self.list);
  self.messages = std::move(read);
  self.input = std::move(input);
  self.known.clear();
  self.digests = nb::object();
  self.text_digests.clear();
}

void read_grown(PyGrowingMessages& self, nb::handle given) {
  const uint32_t root = self.messages->root();
  const nb::object messages = translated("", [&] { return self.input->items(given.ptr(), root); });
  if (!self.known.begins(messages.ptr())) begin(self);
  const auto known = static_cast<Py_ssize_t>(self.list->size);
  if (PyList_Size(messages.ptr()) == known) return;
  self.digests = nb::object();
  try {
    translated("", [&] { self.input->add_mappings(*self.list, messages.ptr(), known, root); });
  } catch (...) {
    sleep_if_ending(std::current_exception());
    begin(self);
    throw;
  }
  self.known.add(messages.ptr(), known);
}

PyMessages from_json(const nb::object& given) {
  if (!nb::isinstance<nb::bytes>(given))
    throw nb::type_error((std::string("json must be bytes, not ") + nb::type_name(given.type()).c_str()).c_str());
  const auto json = nb::borrow<nb::bytes>(given);
  auto read = std::make_shared<Messages>();
  translated("", [&] {
    const GilRelease unlocked;
    read->read_json({json.c_str(), json.size()});
  });
  return {std::move(read), nullptr, json, nb::object()};
}

// None if the server's own reader must look at the messages.
nb::object from_chat_json(const nb::bytes& json, uint64_t most_items) {
  auto read = std::make_shared<Messages>();
  try {
    const GilRelease unlocked;
    read->read_json({json.c_str(), json.size()});
    if (!read->size() || count_chat_items(*read) > most_items || !shape_chat_messages(*read)) read.reset();
  } catch (const Error&) {
    return nb::none();
  }
  if (!read) return nb::none();
  return nb::cast(PyMessages{std::move(read), nullptr, json, nb::object()});
}

nb::object item(const PyMessages& self, const nb::object& index) {
  const auto size = static_cast<Py_ssize_t>(self.messages->size());
  const auto message = [&](Py_ssize_t i) { return to_python((*self.messages)[static_cast<uint32_t>(i)]); };
  if (nb::isinstance<nb::slice>(index)) {
    const auto [start, stop, step, count] = nb::cast<nb::slice>(index).compute(static_cast<size_t>(size));
    nb::list list;
    for (size_t i = 0; i < count; i++) list.append(message(start + static_cast<Py_ssize_t>(i) * step));
    return list;
  }
  Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (at == -1 && PyErr_Occurred()) throw nb::python_error();
  if (at < 0) at += size;
  if (at < 0 || at >= size) throw nb::index_error("no such message");
  return message(at);
}

void check(PyMessages& self, const Roles& roles) {
  translated("", [&] { check_messages(self.messages->workspace(), self.messages->list(), roles); });
}

nb::object digests(PyMessages& self) {
  if (self.digests.is_valid()) return self.digests;
  const nb::object blake2b = nb::module_::import_("hashlib").attr("blake2b");
  nb::list list;
  for (uint32_t i = 0; i < self.messages->size(); i++) {
    const std::string canonical = self.messages->canonical(i);
    list.append(blake2b(nb::bytes(canonical.data(), canonical.size()), nb::arg("digest_size") = 16).attr("digest")());
  }
  return self.digests = nb::tuple(list);
}

const std::vector<uint64_t>& digests_of_texts(PyMessages& self) {
  self.messages->add_text_digests(self.text_digests);
  return self.text_digests;
}

nb::tuple text_digests(PyMessages& self) { return nb::tuple(nb::cast(digests_of_texts(self))); }

nb::tuple text_chain(PyMessages& self, int64_t start) {
  return nb::tuple(nb::cast(chain(static_cast<uint64_t>(start), digests_of_texts(self))));
}

// The list of tools, checked, as new objects.
nb::list read_tools(nb::handle tools) {
  Messages read;
  PythonInput input(read.workspace(), read.origins());
  return translated("", [&] {
    const uint32_t origin = read.origins().add_variable(read.workspace().symbols.intern("tools"));
    List* const list = input.mappings(tools.ptr(), origin);
    check_tools(read.workspace(), *list);
    return nb::cast<nb::list>(to_python(Value::of_list(list)));
  });
}

ArgumentForm argument_form(const std::string& name) {
  return name == "object" ? ArgumentForm::Object : name == "text" ? ArgumentForm::Text : ArgumentForm::Either;
}

NoContent no_content(const std::string& name) {
  return name == "absent" ? NoContent::Absent : name == "none" ? NoContent::None : NoContent::Empty;
}

MessageForm make_form(Roles roles, bool takes_parts, const std::string& arguments, const nb::dict& special_tokens) {
  MessageForm form{std::move(roles), takes_parts, argument_form(arguments), {}};
  for (const auto& [name, text] : special_tokens)
    form.special_tokens.emplace_back(nb::cast<std::string>(name), nb::cast<std::string>(text));
  return form;
}

// Tools or documents: a list of mappings, or None.
Value mappings_or_none(PythonInput& input, Rendering& rendering, const char* name, nb::handle values) {
  if (values.is_none()) return Value::none();
  const uint32_t origin = rendering.origins().add_variable(rendering.workspace().symbols.intern(name));
  List* const list = input.mappings(values.ptr(), origin);
  if (std::string_view(name) == "tools") check_tools(rendering.workspace(), *list);
  return Value::of_list(list);
}

PyRendering render_chat(const PyTemplate& self, nb::handle messages, const MessageForm& form, const nb::dict& variables,
                        nb::handle tools, nb::handle documents, bool add_generation_prompt, const nb::callable& clock,
                        nb::handle history, nb::handle continued, const std::string& tag, std::string_view source,
                        const nb::object& tokens, nb::handle earlier) {
  auto rendering = std::make_shared<Rendering>(self.parsed);
  Workspace& workspace = rendering->workspace();
  Origins& origins = rendering->origins();
  const ControlTokens* const search = tokens.is_none() ? nullptr : nb::cast<const ControlTokens*>(tokens);
  const HistoryForm* const tidied = history.is_none() ? nullptr : nb::cast<const HistoryForm*>(history);
  const PyRendering* const before = earlier.is_none() ? nullptr : nb::cast<const PyRendering*>(earlier);
  const bool was_searched = before && before->searched.is_valid() && before->searched.is(tokens);
  std::string end, text;
  std::vector<uint64_t> found;
  translated(self.name, [&] {
    PythonInput input(workspace, origins);
    List* list;
    if (nb::isinstance<PyMessages>(messages)) {
      const auto& given = nb::cast<const PyMessages&>(messages);
      const GilRelease unlocked;
      list = given.messages->copy_into(workspace, origins);
    } else {
      list = input.mappings(messages.ptr(), origins.add_variable(workspace.symbols.intern("messages")));
    }
    for (const auto& [name, text] : form.special_tokens) {
      const uint32_t origin = origins.add_variable(workspace.symbols.intern(name));
      origins.at(origin).vouched = true;
      rendering->set_input(name, Value::of_text(workspace.leaf(text, origin)));
    }
    for (const auto& [name, value] : variables) input.read_variable(name.ptr(), value.ptr(), *rendering, false);
    rendering->set_input("tools", mappings_or_none(input, *rendering, "tools", tools));
    rendering->set_input("documents", mappings_or_none(input, *rendering, "documents", documents));
    rendering->set_input("add_generation_prompt", Value::boolean(add_generation_prompt));
    const Clock now = self.parsed->reads_clock() ? clock_of(clock()) : Clock{};
    const std::string field = continued.is_none() ? "" : nb::cast<std::string>(continued);
    const GilRelease unlocked;
    MessageShaper shaper(workspace, origins, form);
    shaper.shape(*list, tidied);
    for (uint32_t i = 0; i < list->size; i++) rendering->roles.push_back(shaper.role(list->items[i]));
    if (tidied) {
      HistoryTidier tidier(workspace, origins, *tidied);
      tidier.tidy(*list, !continued.is_none());
      rendering->mended = tidier.mended();
    }
    if (!continued.is_none()) end = workspace.flat(shaper.mark_end(*list, {field, tag, source}));
    rendering->set_input("messages", Value::of_list(list));
    rendering->run(now);
    text = rendering->take_text();
    if (!search) return;
    if (was_searched) {
      const SearchedText known{*before->rendering, before->view(), before->found};
      found = search->guarded(*rendering, text, &known);
    } else {
      found = search->guarded(*rendering, text);
    }
  });
  return {rendering, std::make_shared<const std::string>(std::move(text)), end, search ? tokens : nb::object(),
          std::move(found)};
}

}  // namespace

void bind_messages(nb::module_& m, nb::class_<PyTemplate>& templates) {
  nb::class_<PyMessages>(m, "Messages")
      .def(
          "__init__", [](PyMessages* self, nb::handle messages) { read_objects(*self, messages); },
          nb::arg("messages").none())
      .def_static("from_json", &from_json, nb::arg("json").none())
      .def_static("from_chat_json", &from_chat_json, nb::arg("json"), nb::arg("most_items"))
      .def("__len__", [](const PyMessages& self) { return self.messages->size(); })
      .def("__getitem__", &item, nb::arg("index"))
      .def("__iter__", [](const nb::object& self) { return nb::steal(PySeqIter_New(self.ptr())); })
      .def("check", &check, nb::arg("roles"))
      .def_prop_ro("digests", &digests)
      .def_prop_ro("text_digests", &text_digests)
      .def("text_chain", &text_chain, nb::arg("start"))
      .def_prop_ro("text_size", [](const PyMessages& self) { return self.messages->text_size(); });

  nb::class_<PyGrowingMessages, PyMessages>(m, "GrowingMessages")
      .def("__init__",
           [](PyGrowingMessages* self) {
             new (self) PyGrowingMessages();
             begin(*self);
           })
      .def("read", &read_grown, nb::arg("messages").none());

  nb::class_<MessageForm>(m, "MessageForm")
      .def(
          "__init__",
          [](MessageForm* self, Roles roles, bool takes_parts, const std::string& arguments,
             const nb::dict& special_tokens) {
            new (self) MessageForm(make_form(std::move(roles), takes_parts, arguments, special_tokens));
          },
          nb::arg("roles"), nb::arg("takes_parts"), nb::arg("arguments"), nb::arg("special_tokens"));

  nb::class_<HistoryForm>(m, "HistoryForm")
      .def(
          "__init__",
          [](HistoryForm* self, const std::string& arguments, const nb::dict& contents, const std::string& of_calls,
             const std::string& of_answer, bool replaces_empty, bool parts_calls, bool single_calls,
             bool orders_results, bool takes_late_results, bool takes_orphans, bool joins_thinking, bool joins_system,
             bool takes_later_system, bool takes_developer, bool needs_ids, std::string call_ids) {
            const auto form = [&](const char* role) {
              const auto [text, parts] = nb::cast<std::pair<bool, bool>>(contents[role]);
              return ContentForm{text, parts};
            };
            new (self) HistoryForm{
                argument_form(arguments), form("system"),        form("user"),   form("assistant"),  form("tool"),
                no_content(of_calls),     no_content(of_answer), replaces_empty, parts_calls,        single_calls,
                orders_results,           takes_late_results,    takes_orphans,  joins_thinking,     joins_system,
                takes_later_system,       takes_developer,       needs_ids,      std::move(call_ids)};
          },
          nb::arg("arguments"), nb::arg("contents"), nb::arg("of_calls"), nb::arg("of_answer"),
          nb::arg("replaces_empty"), nb::arg("parts_calls"), nb::arg("single_calls"), nb::arg("orders_results"),
          nb::arg("takes_late_results"), nb::arg("takes_orphans"), nb::arg("joins_thinking"), nb::arg("joins_system"),
          nb::arg("takes_later_system"), nb::arg("takes_developer"), nb::arg("needs_ids"), nb::arg("call_ids"));

  templates.def("render_chat", &render_chat, nb::arg("messages").none(), nb::arg("form"), nb::arg("variables"),
                nb::arg("tools").none(), nb::arg("documents").none(), nb::arg("add_generation_prompt"),
                nb::arg("clock"), nb::arg("history") = nb::none(), nb::arg("continued") = nb::none(),
                nb::arg("tag") = "", nb::arg("source") = "", nb::arg("tokens") = nb::none(),
                nb::arg("earlier") = nb::none());
  m.def("read_tools", &read_tools, nb::arg("tools"));
}

}  // namespace tokenweir::templates
