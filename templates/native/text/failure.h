// The exceptions of parsing and rendering; python_binding.h turns each into a Python exception.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

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

// The parts of a message as one: texts, characters and whole numbers. Never inlined, for compilers inline less of what is hot
// in a unit that is large.
template <class... Parts>
[[gnu::cold, gnu::noinline]] std::string joined(const Parts&... parts) {
  std::string message;
  const auto add = [&](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_integral_v<Part> && !std::is_same_v<Part, char>)
      message += std::to_string(part);
    else
      message += part;
  };
  (add(parts), ...);
  return message;
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void type_error(const Parts&... parts) {
  throw Failure(joined("TypeError: ", parts...));
}
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void value_error(const Parts&... parts) {
  throw Failure(joined("ValueError: ", parts...));
}

}  // namespace tokenweir::templates
