// Filters, tests and global functions of templates.
#pragma once

#include "values/arguments.h"

namespace tokenweir::templates {

template <class Result>
struct Applied {
  std::string_view name;
  Signature signature{};
  Result (*apply)(Evaluator&, const Value& subject, const Bound&) = nullptr;
  Result (*apply_any)(Evaluator&, const Value& subject, const Arguments&) = nullptr;  // takes any arguments, instead

  Result operator()(Evaluator& evaluator, const Value& subject, const Arguments& arguments) const {
    return apply ? apply(evaluator, subject, bind(name, signature, arguments))
                 : apply_any(evaluator, subject, arguments);
  }
};

struct Filter : Applied<Value> {};
struct Test : Applied<bool> {};

struct Function {
  std::string_view name;
  Value (*call)(Evaluator&, const Arguments&);
};

// Null if there is no such filter.
const Filter* find_filter(std::string_view name);
// Whether Jinja has a filter that the engine leaves out.
bool is_known_to_jinja(std::string_view name);
// The message for a filter that the engine does not have.
std::string missing_filter(std::string_view name);
const Test* find_test(std::string_view name);
const Function* find_function(std::string_view name);

// Looks up `a.b.0` in a value, as filters with an attribute do; an absent `path` is the value itself.
Value attribute_at(Evaluator& evaluator, Value value, const Value& path, const Value& otherwise = Value());

}  // namespace tokenweir::templates
