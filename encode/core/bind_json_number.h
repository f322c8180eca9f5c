// Numbers of a tokenizer.json as Python sees them.
#pragma once

#include "interop.h"
#include "json_number.h"

namespace tokenweir {

inline void bind_json_number(nb::module_& m) {
  m.def(
      "json_numbers",
      [](nb::bytes lines, const std::string& where) {
        std::vector<double> numbers;
        const std::string_view text(lines.c_str(), lines.size());
        for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
          end = std::min(text.find('\n', begin), text.size());
          numbers.push_back(
              JsonNumber::parse(text.substr(begin, end - begin), where + "[" + std::to_string(numbers.size()) + "]"));
        }
        return numbers;
      },
      "lines"_a, "where"_a);
}

}  // namespace tokenweir
