// Tests: the names that may follow `is`.
#include <vector>

#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/filter.h"
#include "values/method.h"

namespace tokenweir::templates {
namespace {

template <Kind kind>
bool is_kind(Evaluator&, const Value& value, const Bound&) {
  return value.kind == kind;
}

bool is_defined(Evaluator&, const Value& value, const Bound&) { return !value.is_undefined(); }
bool is_integer(Evaluator&, const Value& value, const Bound&) {
  return value.kind == Kind::Int || value.kind == Kind::BigInt;
}
bool is_number(Evaluator&, const Value& value, const Bound&) { return value.is_number(); }
bool is_true(Evaluator&, const Value& value, const Bound&) { return value.kind == Kind::Bool && value.integer; }
bool is_false(Evaluator&, const Value& value, const Bound&) { return value.kind == Kind::Bool && !value.integer; }
bool is_escaped(Evaluator&, const Value& value, const Bound&) { return value.is_markup(); }
bool is_same(Evaluator&, const Value& value, const Bound& bound) { return identical(value, bound[0]); }

bool is_iterable(Evaluator&, const Value& value, const Bound&) {
  switch (value.kind) {
    case Kind::Undefined:
    case Kind::Text:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::Dict:
    case Kind::View:
    case Kind::Generator:
    case Kind::Loop: return true;
    default: return false;
  }
}

bool is_sequence(Evaluator&, const Value& value, const Bound&) {
  return value.is_undefined() || value.is_text() || value.is_sequence() || value.kind == Kind::Dict;
}

bool is_callable(Evaluator&, const Value& value, const Bound&) {
  switch (value.kind) {
    case Kind::Undefined:
    case Kind::Macro:
    case Kind::Method:
    case Kind::Function:
    case Kind::Loop:
    case Kind::Joiner: return true;
    default: return false;
  }
}

// islower and isupper of the value's text: some letter has case, and none has the other.
template <bool upper>
bool is_cased_as(Evaluator& evaluator, const Value& value, const Bound&) {
  const std::string_view text = evaluator.workspace.flat(to_text(evaluator.workspace, value));
  evaluator.workspace.spend(text.size() / 8);
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = next_character(text, at);
    if (is_title(c) || (upper ? is_lower(c) : is_upper(c))) return false;
    found |= upper ? is_upper(c) : is_lower(c);
  }
  return found;
}

bool leaves_rest(Evaluator& evaluator, const Value& value, const Value& divisor, int64_t rest) {
  return equal(evaluator.workspace, evaluator.arithmetic(Arithmetic::Modulo, value, divisor), Value::of_int(rest));
}

bool is_odd(Evaluator& evaluator, const Value& value, const Bound&) {
  return leaves_rest(evaluator, value, Value::of_int(2), 1);
}
bool is_even(Evaluator& evaluator, const Value& value, const Bound&) {
  return leaves_rest(evaluator, value, Value::of_int(2), 0);
}
bool is_divisible(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return leaves_rest(evaluator, value, bound[0], 0);
}

bool is_equal(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return equal(evaluator.workspace, value, bound[0]);
}
bool is_unequal(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return !is_equal(evaluator, value, bound);
}
bool is_less(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return compare(evaluator.workspace, value, bound[0], "<") == -1;
}
bool is_greater(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return compare(evaluator.workspace, value, bound[0], ">") == 1;
}
bool is_at_most(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return compare(evaluator.workspace, value, bound[0], "<=") <= 0;
}
bool is_at_least(Evaluator& evaluator, const Value& value, const Bound& bound) {
  const int order = compare(evaluator.workspace, value, bound[0], ">=");
  return order == 0 || order == 1;
}
bool is_in(Evaluator& evaluator, const Value& value, const Bound& bound) { return evaluator.contains(bound[0], value); }

bool is_filter(Evaluator& evaluator, const Value& value, const Bound&) {
  return value.is_text() && find_filter(evaluator.workspace.flat(value.text));
}

bool is_test(Evaluator& evaluator, const Value& value, const Bound&) {
  return value.is_text() && find_test(evaluator.workspace.flat(value.text));
}

const Signature kOther{{kPlaceOnly}, 1};

const std::vector<Test>& tests() {
  static const std::vector<Test> table{
      {"!=", kOther, is_unequal},
      {"<", kOther, is_less},
      {"<=", kOther, is_at_most},
      {"==", kOther, is_equal},
      {">", kOther, is_greater},
      {">=", kOther, is_at_least},
      {"boolean", {}, is_kind<Kind::Bool>},
      {"callable", {}, is_callable},
      {"defined", {}, is_defined},
      {"divisibleby", {{"num"}, 1}, is_divisible},
      {"eq", kOther, is_equal},
      {"equalto", kOther, is_equal},
      {"escaped", {}, is_escaped},
      {"even", {}, is_even},
      {"false", {}, is_false},
      {"filter", {}, is_filter},
      {"float", {}, is_kind<Kind::Float>},
      {"ge", kOther, is_at_least},
      {"greaterthan", kOther, is_greater},
      {"gt", kOther, is_greater},
      {"in", {{"seq"}, 1}, is_in},
      {"integer", {}, is_integer},
      {"iterable", {}, is_iterable},
      {"le", kOther, is_at_most},
      {"lessthan", kOther, is_less},
      {"lower", {}, is_cased_as<false>},
      {"lt", kOther, is_less},
      {"mapping", {}, is_kind<Kind::Dict>},
      {"ne", kOther, is_unequal},
      {"none", {}, is_kind<Kind::None>},
      {"number", {}, is_number},
      {"odd", {}, is_odd},
      {"sameas", {{"other"}, 1}, is_same},
      {"sequence", {}, is_sequence},
      {"string", {}, is_kind<Kind::Text>},
      {"test", {}, is_test},
      {"true", {}, is_true},
      {"undefined", {}, is_kind<Kind::Undefined>},
      {"upper", {}, is_cased_as<true>},
  };
  return table;
}

}  // namespace

const Test* find_test(std::string_view name) {
  for (const Test& test : tests())
    if (test.name == name) return &test;
  return nullptr;
}

}  // namespace tokenweir::templates
