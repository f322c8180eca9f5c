// Arguments of calls, and the signatures of functions, filters, tests and methods.
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "values/value.h"

namespace tokenweir::templates {

struct Arguments {
  const Value* positional = nullptr;
  uint32_t count = 0;
  const Symbol* const* names = nullptr;  // of the named ones
  const Value* named = nullptr;
  uint32_t named_count = 0;

  // The arguments behind the first `n` positional ones.
  Arguments behind(uint32_t n) const { return {positional + n, count - n, names, named, named_count}; }
  // Sets the named ones as keys.
  void add_named_to(Workspace& workspace, Dict& dict) const;
};

inline constexpr size_t kMostParameters = 5;

// Names of parameters, in order; those behind `required` may be absent. One without a name is only given by place.
struct Signature {
  std::array<std::string_view, kMostParameters> names{};
  uint8_t required = 0;

  uint32_t size() const {
    uint32_t n = 0;
    while (n < kMostParameters && !names[n].empty()) n++;
    return n;
  }
};
inline constexpr std::string_view kPlaceOnly = "/";

// The entry of a table that has a name, or null.
template <class Table>
auto find_named(const Table& table, std::string_view name) {
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& each) { return each.name == name; });
  return found == std::end(table) ? nullptr : &*found;
}

using Bound = std::array<Value, kMostParameters>;

// The value of each parameter, Missing if it is absent. Raises TypeError for what `what` does not take.
Bound bind(std::string_view what, const Signature& signature, const Arguments& arguments);

// Checks of single arguments; `what` is for messages.
Text* text_argument(const Value& value, std::string_view what);
int64_t integer_argument(const Value& value, std::string_view what);
int64_t integer_or(const Value& value, int64_t otherwise, std::string_view what);  // if it is missing
bool truth_or(const Value& value, bool otherwise);

}  // namespace tokenweir::templates
