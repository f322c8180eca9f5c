// Tests: the names that may follow `is`.
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "evaluate/evaluator.h"
#include "values/filter.h"
#include "values/text_edit.h"

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

bool is_any_of(const Value& value, std::initializer_list<Kind> kinds) {
  return std::find(kinds.begin(), kinds.end(), value.kind) != kinds.end();
}

bool is_iterable(Evaluator&, const Value& value, const Bound&) {
  return value.is_sequence() ||
         is_any_of(value, {Kind::Undefined, Kind::Text, Kind::Dict, Kind::View, Kind::Generator, Kind::Loop});
}

bool is_sequence(Evaluator&, const Value& value, const Bound&) {
  return value.is_sequence() || is_any_of(value, {Kind::Undefined, Kind::Text, Kind::Dict});
}

bool is_callable(Evaluator&, const Value& value, const Bound&) {
  return is_any_of(value, {Kind::Undefined, Kind::Macro, Kind::Method, Kind::Function, Kind::Loop, Kind::Joiner});
}

// islower and isupper of the value's text.
template <bool upper>
bool is_cased_as(Evaluator& evaluator, const Value& value, const Bound&) {
  return has_case(evaluator.workspace, to_text(evaluator.workspace, value), upper);
}

bool leaves_rest(Evaluator& evaluator, const Value& value, const Value& divisor, int64_t rest) {
  return equal(evaluator.workspace, evaluator.arithmetic(Arithmetic::Modulo, value, divisor), Value::of_int(rest));
}

template <int rest>
bool leaves_by_two(Evaluator& evaluator, const Value& value, const Bound&) {
  return leaves_rest(evaluator, value, Value::of_int(2), rest);
}
bool is_divisible(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return leaves_rest(evaluator, value, bound[0], 0);
}

template <Comparison comparison>
bool compares(Evaluator& evaluator, const Value& value, const Bound& bound) {
  return evaluator.holds(comparison, value, bound[0]);
}

bool is_filter(Evaluator& evaluator, const Value& value, const Bound&) {
  return value.is_text() && find_filter(evaluator.workspace.flat(value.text));
}

bool is_test(Evaluator& evaluator, const Value& value, const Bound&) {
  return value.is_text() && find_test(evaluator.workspace.flat(value.text));
}

const Signature kOther{{kPlaceOnly}, 1};

const std::vector<Test>& tests() {
  static const std::vector<Test> table{
      {"!=", kOther, compares<Comparison::NotEqual>},
      {"<", kOther, compares<Comparison::Less>},
      {"<=", kOther, compares<Comparison::LessEqual>},
      {"==", kOther, compares<Comparison::Equal>},
      {">", kOther, compares<Comparison::Greater>},
      {">=", kOther, compares<Comparison::GreaterEqual>},
      {"boolean", {}, is_kind<Kind::Bool>},
      {"callable", {}, is_callable},
      {"defined", {}, is_defined},
      {"divisibleby", {{"num"}, 1}, is_divisible},
      {"eq", kOther, compares<Comparison::Equal>},
      {"equalto", kOther, compares<Comparison::Equal>},
      {"escaped", {}, is_escaped},
      {"even", {}, leaves_by_two<0>},
      {"false", {}, is_false},
      {"filter", {}, is_filter},
      {"float", {}, is_kind<Kind::Float>},
      {"ge", kOther, compares<Comparison::GreaterEqual>},
      {"greaterthan", kOther, compares<Comparison::Greater>},
      {"gt", kOther, compares<Comparison::Greater>},
      {"in", {{"seq"}, 1}, compares<Comparison::In>},
      {"integer", {}, is_integer},
      {"iterable", {}, is_iterable},
      {"le", kOther, compares<Comparison::LessEqual>},
      {"lessthan", kOther, compares<Comparison::Less>},
      {"lower", {}, is_cased_as<false>},
      {"lt", kOther, compares<Comparison::Less>},
      {"mapping", {}, is_kind<Kind::Dict>},
      {"ne", kOther, compares<Comparison::NotEqual>},
      {"none", {}, is_kind<Kind::None>},
      {"number", {}, is_number},
      {"odd", {}, leaves_by_two<1>},
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

const Test* find_test(std::string_view name) { return find_named(tests(), name); }

}  // namespace tokenweir::templates
