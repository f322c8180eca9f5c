// The compiled module: bindings and nothing else. templates/_native.pyi documents what is here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "analysis.h"
#include "characters.h"
#include "control_tokens.h"
#include "python_values.h"
#include "rendering.h"

namespace nb = nanobind;
using namespace tokenweir::templates;

namespace {

nb::object error_class(const char* name) { return nb::module_::import_("tokenweir.encode.errors").attr(name); }

[[noreturn]] void raise(const char* error, const std::string& message) {
  PyErr_SetString(error_class(error).ptr(), message.c_str());
  throw nb::python_error();
}

// Calls `work`, and raises what it throws as Python exceptions that begin with the template's name.
template <class Work>
auto translated(const std::string& name, Work&& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    raise("TemplateError", failure.line ? name + ", line " + std::to_string(failure.line) + ": " + failure.what() : name + ": " + failure.what());
  } catch (const BadText& bad) {
    raise("TextError", bad.what());
  } catch (const PythonError&) {
    throw nb::python_error();
  }
}

std::string_view utf8(const nb::str& text) {
  Py_ssize_t size;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (!bytes) throw nb::python_error();
  return {bytes, static_cast<size_t>(size)};
}

nb::str new_str(std::string_view text) { return nb::str(text.data(), text.size()); }

struct PyTemplate {
  PyTemplate(std::string_view source, std::string name) : name(std::move(name)) {
    parsed = translated(this->name, [&] {
      nb::gil_scoped_release unlocked;
      return std::make_shared<const Template>(source);
    });
  }

  const std::string name;
  std::shared_ptr<const Template> parsed;
};

Clock clock_of(nb::handle now) {
  nb::object moment = nb::borrow(now);
  if (now.is_none()) moment = nb::module_::import_("datetime").attr("datetime").attr("now")();
  const auto field = [&](const char* name) { return nb::cast<int>(moment.attr(name)); };
  const nb::object date = moment.attr("timetuple")();
  return {field("year"), field("month"), field("day"), field("hour"), field("minute"), field("second"), field("microsecond"),
          nb::cast<int>(date.attr("tm_wday")), nb::cast<int>(date.attr("tm_yday"))};
}

struct PyRendering {
  std::shared_ptr<Rendering> rendering;
  nb::str text;
};

PyRendering render(const PyTemplate& self, nb::handle variables, nb::handle now, const std::set<std::string>& vouched) {
  auto rendering = std::make_shared<Rendering>(self.parsed);
  translated(self.name, [&] {
    PythonInput input(*rendering, vouched);
    input.read(variables.ptr());
    const Clock clock = clock_of(now);
    nb::gil_scoped_release unlocked;
    rendering->run(clock);
  });
  const std::string text = rendering->take_text();
  return {rendering, new_str(text)};
}

nb::list spans(const PyRendering& self) {
  nb::list list;
  uint64_t at = 0;
  for (const Span& span : self.rendering->spans()) {
    list.append(nb::make_tuple(at, at + span.size, span.origin, span.offset, span.changed));
    at += span.size;
  }
  return list;
}

nb::list character_spans(const PyRendering& self) {
  nb::list list;
  uint64_t at = 0;
  for (const Span& span : self.rendering->spans()) {
    list.append(nb::make_tuple(at, at + span.characters, span.origin, span.changed));
    at += span.characters;
  }
  return list;
}

nb::list generation(const PyRendering& self) {
  nb::list list;
  for (const auto& [begin, end] : self.rendering->generation()) list.append(nb::make_tuple(begin, end));
  return list;
}

nb::list left_out(const PyRendering& self) {
  nb::list list;
  const Origins& origins = self.rendering->origins();
  const std::vector<bool> written = self.rendering->written();
  for (uint32_t i = Origins::kFirst; i < origins.size(); i++) {
    const Origin& origin = origins.at(i);
    if (origin.is_text && origin.step != Origin::Step::Key && !written[i]) list.append(origins.path(i));
  }
  return list;
}

// The same in characters.
nb::list character_generation(const PyRendering& self) {
  const std::string_view text = utf8(self.text);
  nb::list list;
  uint64_t byte = 0, character = 0;
  const auto to_character = [&](uint64_t to) {
    character += count_characters(text.substr(byte, to - byte));
    byte = to;
    return character;
  };
  for (const auto& [begin, end] : self.rendering->generation()) {
    const uint64_t start = to_character(begin);
    list.append(nb::make_tuple(start, to_character(end)));
  }
  return list;
}

nb::tuple guarded(const PyRendering& self, const ControlTokens& tokens) {
  const std::string_view text = utf8(self.text);
  std::vector<uint64_t> offsets;
  {
    nb::gil_scoped_release unlocked;
    offsets = tokens.guarded(*self.rendering, text);
  }
  nb::list list;
  for (const uint64_t offset : offsets) list.append(offset);
  return nb::tuple(list);
}

// (start, end, answered) of the stretches that are neither the template's nor vouched for, in characters
nb::list unvouched(const PyRendering& self) {
  nb::list list;
  const Origins& origins = self.rendering->origins();
  uint64_t at = 0;
  for (const Span& span : self.rendering->spans()) {
    if (!origins.vouched(span.origin))
      list.append(nb::make_tuple(at, at + span.characters, span.origin >= Origins::kFirst && origins.at(span.origin).answered));
    at += span.characters;
  }
  return list;
}

void cut(PyRendering& self, uint64_t characters) { self.text = new_str(self.rendering->cut(utf8(self.text), characters)); }

// (text, spans, origins, generation, steps), for pickle
nb::tuple state(const PyRendering& self) {
  const Rendering& rendering = *self.rendering;
  nb::list spans, origins;
  for (const Span& span : rendering.spans())
    spans.append(nb::make_tuple(span.size, span.characters, span.origin, span.offset, span.changed));
  for (const Origin& origin : rendering.origins().inputs())
    origins.append(nb::make_tuple(origin.parent, static_cast<int>(origin.step), origin.vouched, origin.is_text, origin.answered,
                                  origin.key ? nb::object(new_str(origin.key->text)) : nb::none(), origin.index));
  return nb::make_tuple(self.text, spans, origins, generation(self), rendering.steps());
}

void restore(PyRendering& self, const nb::tuple& state) {
  std::vector<Span> spans;
  for (const nb::handle span : state[1])
    spans.push_back({nb::cast<uint32_t>(span[0]), nb::cast<uint32_t>(span[1]), nb::cast<uint32_t>(span[2]),
                     nb::cast<uint32_t>(span[3]), nb::cast<bool>(span[4])});
  std::vector<std::pair<uint64_t, uint64_t>> generation;
  for (const nb::handle stretch : state[3])
    generation.emplace_back(nb::cast<uint64_t>(stretch[0]), nb::cast<uint64_t>(stretch[1]));
  auto rendering = std::make_shared<Rendering>(std::move(spans), std::move(generation), nb::cast<uint64_t>(state[4]));
  std::vector<Origin> origins;
  for (const nb::handle origin : state[2]) {
    const nb::object key = origin[5];
    origins.push_back({nb::cast<uint32_t>(origin[0]), static_cast<Origin::Step>(nb::cast<int>(origin[1])), nb::cast<bool>(origin[2]),
                       nb::cast<bool>(origin[3]), nb::cast<bool>(origin[4]),
                       key.is_none() ? nullptr : rendering->name(nb::cast<std::string>(key)), nb::cast<uint32_t>(origin[6])});
  }
  rendering->origins().restore(std::move(origins));
  new (&self) PyRendering{rendering, nb::cast<nb::str>(state[0])};
}

std::string origin(const PyRendering& self, uint32_t index) {
  if (index >= self.rendering->origins().size()) throw nb::index_error("no such origin");
  return self.rendering->origins().path(index);
}

}  // namespace

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // objects alive when the interpreter ends are not leaks

  nb::class_<PyTemplate>(m, "Template")
      .def(nb::init<std::string_view, std::string>(), nb::arg("source"), nb::arg("name") = "template")
      .def_prop_ro("variables",
                   [](const PyTemplate& self) {
                     nb::set names;
                     for (const std::string_view name : self.parsed->variables()) names.add(new_str(name));
                     return nb::frozenset(names);
                   })
      .def_prop_ro("iterates_over_content", [](const PyTemplate& self) { return iterates_over_content(self.parsed->statements()); })
      .def_prop_ro("argument_form", [](const PyTemplate& self) { return new_str(argument_form(self.parsed->statements())); })
      .def_prop_ro("marks_generation", [](const PyTemplate& self) { return marks_generation(self.parsed->statements()); })
      .def("render", &render, nb::arg("variables"), nb::kw_only(), nb::arg("now") = nb::none(), nb::arg("vouched") = std::set<std::string>());

  nb::class_<ControlTokens>(m, "ControlTokens")
      .def(nb::init<const std::vector<std::string>&, const std::vector<std::string>&>(), nb::arg("tokens"), nb::arg("exempt"));

  nb::class_<PyRendering>(m, "Rendering")
      .def_prop_ro("text", [](const PyRendering& self) { return self.text; })
      .def_prop_ro("spans", &spans)
      .def_prop_ro("character_spans", &character_spans)
      .def_prop_ro("generation", &generation)
      .def_prop_ro("character_generation", &character_generation)
      .def_prop_ro("left_out", &left_out)
      .def_prop_ro("steps", [](const PyRendering& self) { return self.rendering->steps(); })
      .def_prop_ro("unvouched", &unvouched)
      .def("origin", &origin, nb::arg("index"))
      .def("guarded", &guarded, nb::arg("tokens"))
      .def("cut", &cut, nb::arg("characters"))
      .def("__getstate__", &state)
      .def("__setstate__", &restore);
}
