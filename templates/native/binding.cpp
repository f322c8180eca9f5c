// The compiled module: bindings and nothing else. templates/_native.pyi documents what is here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

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
auto guarded(const std::string& name, Work&& work) {
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

struct PyTemplate {
  PyTemplate(std::string_view source, std::string name) : name(std::move(name)) {
    parsed = guarded(this->name, [&] {
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
  guarded(self.name, [&] {
    PythonInput input(*rendering, vouched);
    input.read(variables.ptr());
    const Clock clock = clock_of(now);
    nb::gil_scoped_release unlocked;
    rendering->run(clock);
  });
  const std::string text = rendering->take_text();
  return {rendering, nb::str(text.data(), text.size())};
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

nb::list generation(const PyRendering& self) {
  nb::list list;
  for (const auto& [begin, end] : self.rendering->generation()) list.append(nb::make_tuple(begin, end));
  return list;
}

nb::list left_out(const PyRendering& self) {
  nb::list list;
  const Origins& origins = self.rendering->origins();
  for (uint32_t i = Origins::kFirst; i < origins.size(); i++) {
    const Origin& origin = origins.at(i);
    if (origin.is_text && origin.step != Origin::Step::Key && !self.rendering->written()[i]) list.append(origins.path(i));
  }
  return list;
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
                     for (const std::string_view name : self.parsed->variables()) names.add(nb::str(name.data(), name.size()));
                     return nb::frozenset(names);
                   })
      .def("render", &render, nb::arg("variables"), nb::kw_only(), nb::arg("now") = nb::none(), nb::arg("vouched") = std::set<std::string>());

  nb::class_<PyRendering>(m, "Rendering")
      .def_prop_ro("text", [](const PyRendering& self) { return self.text; })
      .def_prop_ro("spans", &spans)
      .def_prop_ro("generation", &generation)
      .def_prop_ro("left_out", &left_out)
      .def_prop_ro("steps", [](const PyRendering& self) { return self.rendering->steps(); })
      .def("origin", &origin, nb::arg("index"));
}
