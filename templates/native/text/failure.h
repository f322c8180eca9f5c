// The exceptions of parsing and rendering; python_binding.h turns each into a Python exception.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tokenweir::templates {

// `message` may have zeros, at which `what` ends.
struct Error : std::runtime_error {
  explicit Error(const std::string& message) : std::runtime_error(message), message(message) {}
  const std::string message;
};

// A template that does not parse, fails, or exceeds a bound: TemplateError. `line` is 0 until it is known.
struct Failure : Error {
  explicit Failure(const std::string& message, uint32_t line = 0) : Error(message), line(line) {}
  uint32_t line;
};

// Input that no template gets, whichever it is: TemplateError, without the template's name.
struct BadInput : Error {
  using Error::Error;
};

// Input with a lone surrogate: TextError.
struct BadText : Error {
  using Error::Error;
};

[[noreturn]] inline void type_error(const std::string& message) { throw Failure("TypeError: " + message); }
[[noreturn]] inline void value_error(const std::string& message) { throw Failure("ValueError: " + message); }

}  // namespace tokenweir::templates
