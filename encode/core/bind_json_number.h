// Numbers of a tokenizer.json as Python sees them.
#pragma once

#include "interop.h"
#include "json_number.h"

namespace tokenweir {

inline void bind_json_number(nb::module_& m) {
  m.def("json_numbers", [](nb::bytes json) { return json_numbers({json.c_str(), json.size()}); }, "json"_a);
}

}  // namespace tokenweir
