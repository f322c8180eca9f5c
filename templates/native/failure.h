// The exceptions of parsing and rendering; binding.cpp turns each into a Python exception.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tokenweir::templates {

// A template that does not parse, fails, or exceeds a bound: TemplateError. `line` is 0 until it is known.
struct Failure : std::runtime_error {
  explicit Failure(const std::string& message, uint32_t line = 0) : std::runtime_error(message), line(line) {}
  uint32_t line;
};

// Input with a lone surrogate: TextError.
struct BadText : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] inline void type_error(const std::string& message) { throw Failure("TypeError: " + message); }
[[noreturn]] inline void value_error(const std::string& message) { throw Failure("ValueError: " + message); }

}  // namespace tokenweir::templates
