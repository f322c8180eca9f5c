// The compiled module. templates/_native.pyi documents what is here.
#include "language/analysis.h"
#include "python/python_binding.h"

using namespace tokenweir::templates;

namespace tokenweir::templates {

PyTemplate::PyTemplate(std::string_view source, std::string given) : name(std::move(given)) {
  parsed = translated(name, [&] {
    const GilRelease unlocked;
    return std::make_shared<const Template>(source);
  });
}

Clock clock_of(const nb::object& moment) {
  const nb::object date = moment.attr("timetuple")();
  const auto field = [&](size_t index) { return nb::cast<int>(date[index]); };
  const int microsecond = nb::cast<int>(moment.attr("microsecond"));
  return {field(0), field(1), field(2), field(3), field(4), field(5), microsecond, field(6), field(7)};
}

}  // namespace tokenweir::templates

namespace {

PyRendering render(const PyTemplate& self, nb::handle variables, nb::handle now, const std::set<std::string>& vouched) {
  auto rendering = std::make_shared<Rendering>(self.parsed);
  translated(self.name, [&] {
    PythonInput input(rendering->workspace(), rendering->origins());
    input.read_variables(variables.ptr(), *rendering, vouched);
    Clock clock{};
    if (self.parsed->reads_clock())
      clock =
          clock_of(now.is_none() ? nb::module_::import_("datetime").attr("datetime").attr("now")() : nb::borrow(now));
    const tokenweir::GilRelease unlocked;
    rendering->run(clock);
  });
  return {rendering, std::make_shared<const std::string>(rendering->take_text())};
}

}  // namespace

NB_MODULE(_native, m) {
  tokenweir::refuse_subinterpreter();
  nb::set_leak_warnings(false);  // objects alive when the interpreter ends are not leaks
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    tokenweir::sleep_if_ending(thrown);
    std::rethrow_exception(thrown);
  });

  nb::class_<PyTemplate> templates(m, "Template");
  templates.def(nb::init<std::string_view, std::string>(), nb::arg("source"), nb::arg("name") = "template")
      .def_prop_ro("variables",
                   [](const PyTemplate& self) {
                     nb::set names;
                     for (const std::string_view name : self.parsed->variables()) names.add(new_str(name));
                     return nb::frozenset(names);
                   })
      .def_prop_ro("iterates_over_content",
                   [](const PyTemplate& self) { return iterates_over_content(self.parsed->statements()); })
      .def_prop_ro("argument_form",
                   [](const PyTemplate& self) { return new_str(argument_form(self.parsed->statements())); })
      .def_prop_ro("marks_generation",
                   [](const PyTemplate& self) { return marks_generation(self.parsed->statements()); })
      .def("render", &render, nb::arg("variables"), nb::kw_only(), nb::arg("now") = nb::none(),
           nb::arg("vouched") = std::set<std::string>());

  nb::class_<ControlTokens>(m, "ControlTokens")
      .def(nb::init<const std::vector<std::string>&, const std::vector<std::string>&>(), nb::arg("tokens"),
           nb::arg("exempt"));

  bind_rendering(m);
  bind_messages(m, templates);
}
