// Methods of values.
#pragma once

#include "values/arguments.h"

namespace tokenweir::templates {

struct Method {
  std::string_view name;
  Signature signature{};
  Value (*call)(Evaluator&, const Value& self, const Bound&) = nullptr;          // null: templates may not call it
  Value (*call_any)(Evaluator&, const Value& self, const Arguments&) = nullptr;  // takes any arguments, instead
  bool changes = false;  // it would change the value, which the sandbox forbids

  Value operator()(Evaluator& evaluator, const Value& self, const Arguments& arguments) const;
};

// Fills in the loop's field and the methods of each kind that a symbol names.
void describe(Symbol& symbol);
// The method of a value's kind that a symbol names, or null.
const Method* method_of(const Value& value, Symbol* symbol);

inline const Signature kOne{{kPlaceOnly}, 1};  // of one argument, given by place

extern const Method kLoopCycle, kLoopChanged, kCyclerNext, kCyclerReset;

}  // namespace tokenweir::templates
