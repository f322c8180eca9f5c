// Python's two ways to fill in a text: `%` and `str.format`.
#pragma once

#include "values/arguments.h"

namespace tokenweir::templates {

// text % values
Value format_percent(Evaluator& evaluator, const Value& text, const Value& values);
// text.format(...)
Value format_braces(Evaluator& evaluator, const Value& text, const Arguments& arguments);

}  // namespace tokenweir::templates
