// Declarations that the parts of the compiled module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>

#include "base/gil.h"
#include "evaluate/control_tokens.h"
#include "evaluate/rendering.h"
#include "python/python_values.h"

namespace tokenweir::templates {

namespace nb = nanobind;

[[noreturn]] inline void raise(const char* error, const std::string& message) {
  PyObject* const text = PyUnicode_FromStringAndSize(message.data(), static_cast<Py_ssize_t>(message.size()));
  if (text) {
    PyErr_SetObject(nb::module_::import_("tokenweir.encode.errors").attr(error).ptr(), text);
    Py_DECREF(text);
  }
  throw nb::python_error();
}

// Calls `work`, and raises what it throws as Python exceptions; those of the template begin with its name.
template <class Work>
auto translated(const std::string& name, Work&& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    const std::string line = failure.line ? ", line " + std::to_string(failure.line) : "";
    raise("TemplateError", name.empty() ? failure.message : name + line + ": " + failure.message);
  } catch (const BadInput& bad) {
    raise("TemplateError", bad.message);
  } catch (const BadText& bad) {
    raise("TextError", bad.message);
  }
}

inline nb::str new_str(std::string_view text) { return nb::str(text.data(), text.size()); }

struct PyTemplate {
  PyTemplate(std::string_view source, std::string name);

  const std::string name;
  std::shared_ptr<const Template> parsed;
};

// A text in UTF-8 that other modules read by the buffer protocol, without a copy.
struct Utf8 {
  std::shared_ptr<const std::string> text;
};

struct PyRendering {
  std::shared_ptr<Rendering> rendering;
  std::shared_ptr<const std::string> utf8;  // the output
  std::string continued = {};               // the text of the field that is continued
  nb::object searched = {};  // the ControlTokens that the output was searched for when it was made, and what was found
  std::vector<uint64_t> found = {};
  nb::object text = {};  // the output as a str, once it was asked for

  std::string_view view() const { return *utf8; }
};

// The time of a datetime.
Clock clock_of(const nb::object& moment);

void bind_rendering(nb::module_& m);
// Also adds the method `render_chat` to the class Template.
void bind_messages(nb::module_& m, nb::class_<PyTemplate>& templates);

}  // namespace tokenweir::templates
