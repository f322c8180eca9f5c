// Attributes, items, slices and arithmetic, as Python and Jinja's sandbox have them.
#include <cmath>

#include "builtins/format.h"
#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/method.h"
#include "values/text_edit.h"

namespace tokenweir::templates {
namespace {

Value bound(Workspace& workspace, const Value& self, const Method* method) {
  return Value::of(Kind::Method, &Value::method, workspace.arena.make<BoundMethod>(BoundMethod{self, method}));
}

Value absent(const Value& object, const Symbol* symbol, Absent why) {
  return Value::undefined_of(object, why, &Value::symbol, symbol);
}

}  // namespace

Value Evaluator::attribute(const Value& object, Symbol* symbol) {
  switch (object.kind) {
    case Kind::Dict:
      if (!symbol->described) describe(*symbol);
      if (!symbol->of_dict && !symbol->is_dunder) [[likely]] {
        if (const Value* const found = object.dict->find(symbol)) return *found;
        return absent(object, symbol, Absent::Attribute);
      }
      break;
    case Kind::Namespace:
      if (const Value* const found = object.dict->find(symbol)) return *found;
      break;
    case Kind::Undefined:
    case Kind::Missing: fail_undefined(object);
    case Kind::Loop:
      if (symbol->loop_field != LoopField::None ||
          (!symbol->described && (describe(*symbol), symbol->loop_field != LoopField::None)))
        return object.loop->field(*this, symbol->loop_field);
      if (symbol->text == "cycle") return bound(workspace, object, &kLoopCycle);
      if (symbol->text == "changed") return bound(workspace, object, &kLoopChanged);
      break;
    case Kind::Tuple:
      if (object.is_group() && symbol->text == "grouper") return object.list->items[0];
      if (object.is_group() && symbol->text == "list") return object.list->items[1];
      break;
    case Kind::Cycler:
      if (symbol->text == "current") return object.cycler->items->items[object.cycler->at];
      if (symbol->text == "next") return bound(workspace, object, &kCyclerNext);
      if (symbol->text == "reset") return bound(workspace, object, &kCyclerReset);
      break;
    case Kind::Bool:
    case Kind::Int:
    case Kind::BigInt:
    case Kind::Float:
      for (const std::string_view name :
           {"real", "imag", "numerator", "denominator", "conjugate", "bit_length", "bit_count", "to_bytes",
            "from_bytes", "as_integer_ratio", "is_integer", "hex", "fromhex"})
        if (symbol->text == name)
          throw Failure(joined("the attribute '", name, "' of '", type_name(object), "' is not supported"));
      break;
    case Kind::Macro:
      if (symbol->text == "name") return Value::of_text(workspace.leaf(macro_name(*object.macro), kFromTemplate));
      break;
    default: break;
  }
  if (const Method* const method = method_of(object, symbol)) {
    if (method->changes) return absent(object, symbol, Absent::Unsafe);
    return bound(workspace, object, method);
  }
  return absent(object, symbol, symbol->is_dunder ? Absent::Unsafe : Absent::Attribute);
}

Value Evaluator::item(const Value& object, const Value& key, Symbol* symbol) {
  switch (object.kind) {
    case Kind::Dict: {
      const bool hashable = key.kind != Kind::List && key.kind != Kind::Dict;
      if (const Value* const found = symbol     ? object.dict->find(symbol)
                                     : hashable ? object.dict->find(workspace, key)
                                                : nullptr)
        return *found;
      break;
    }
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
      if (key.is_integer()) {
        const int64_t size = object.list->size, at = key.integer < 0 ? key.integer + size : key.integer;
        if (at >= 0 && at < size) return object.list->items[at];
      }
      break;
    case Kind::Text:
      if (key.is_integer()) {
        const auto size = static_cast<int64_t>(workspace.length(object.text));
        const int64_t at = key.integer < 0 ? key.integer + size : key.integer;
        if (at < 0 || at >= size) break;
        const size_t begin = workspace.byte_of(object.text, static_cast<size_t>(at));
        const size_t end = begin + utf8_length(static_cast<uint8_t>(workspace.flat(object.text)[begin]));
        return Value::of_text(workspace.slice(object.text, begin, end), object.detail);
      }
      break;
    case Kind::Undefined:
    case Kind::Missing: fail_undefined(object);
    default: break;
  }
  if (key.is_text()) {
    if (!symbol) symbol = symbol_of(workspace, key.text);
    if (object.kind != Kind::Dict) return attribute(object, symbol);
    if (const Method* const method = method_of(object, symbol); method && !method->changes)
      return bound(workspace, object, method);
    return absent(object, symbol, Absent::Attribute);
  }
  if (!key.is_integer()) return Value::undefined_hint("there is no such element");
  return Value::undefined_of(object, Absent::Element, &Value::integer, key.integer);
}

Value Evaluator::part(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.is_undefined()) fail_undefined(object);
  if (!object.is_text() && !object.is_sequence()) type_error("'", type_name(object), "' object is not subscriptable");
  const auto bound = [](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    if (value.kind == Kind::BigInt) return value.big->negative ? INT64_MIN / 2 : INT64_MAX / 2;
    if (!value.is_integer()) type_error("slice indices must be integers or None or have an __index__ method");
    return value.integer;
  };
  const int64_t by = bound(step, 1), size = length(workspace, object);
  if (!by) value_error("slice step cannot be zero");
  const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? size - 1 : size;
  const auto limited = [&](const Value& value, int64_t otherwise) {
    if (value.is_none()) return otherwise;
    const int64_t at = bound(value, 0);
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  const int64_t from = limited(start, by < 0 ? high : low), to = limited(stop, by < 0 ? low : high);
  const int64_t count =
      by < 0 ? (from > to ? (from - to - 1) / -by + 1 : 0) : (to > from ? (to - from - 1) / by + 1 : 0);
  if (object.is_text()) {
    if (by == 1) {
      const size_t begin = workspace.byte_of(object.text, static_cast<size_t>(from));
      const size_t end = count ? workspace.byte_of(object.text, static_cast<size_t>(to)) : begin;
      return Value::of_text(workspace.slice(object.text, begin, end), object.detail);
    }
    const List* const each = characters(workspace, object.text);
    Rope rope(workspace);
    for (int64_t i = 0; i < count; i++) rope.add(each->items[from + i * by].text);
    return Value::of_text(rope.finish(), object.detail);
  }
  List* list;
  if (by == 1 && object.kind != Kind::Range) {
    list = static_cast<List*>(workspace.arena.take(sizeof(List)));
    *list = {object.list->items + (count ? from : 0), static_cast<uint32_t>(count), static_cast<uint32_t>(count)};
  } else {
    workspace.spend(static_cast<uint64_t>(count));
    list = object.kind == Kind::Range ? static_cast<Range*>(workspace.arena.take(sizeof(Range)))
                                      : List::make(workspace, 1);
    list->capacity = static_cast<uint32_t>(std::max<int64_t>(count, 1));
    list->items = workspace.arena.array<Value>(list->capacity);
    list->size = static_cast<uint32_t>(count);
    for (int64_t i = 0; i < count; i++) list->items[i] = object.list->items[from + i * by];
  }
  if (object.kind == Kind::Range) {
    const Range& whole = *object.range;
    auto* const range = static_cast<Range*>(list);
    range->start = whole.start + from * whole.step;
    range->stop = whole.start + to * whole.step;
    range->step = whole.step * by;
  }
  return Value::of(object.kind, &Value::list, list);
}

bool Evaluator::contains(const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::Text:
      if (!item.is_text()) type_error("'in <string>' requires string as left operand, not ", type_name(item));
      return templates::contains(workspace, container.text, item.text);
    case Kind::Dict: return container.dict->find(workspace, item) != nullptr;
    case Kind::View:
      if (container.detail == static_cast<uint8_t>(ViewKind::Keys))
        return container.dict->find(workspace, item) != nullptr;
      break;
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::Generator:
    case Kind::Loop:
    case Kind::Undefined:
    case Kind::Missing: break;
    default: type_error("argument of type '", type_name(container), "' is not iterable");
  }
  Iterator items = iterate(container);
  for (Value each; items.next(*this, each);) {
    workspace.spend(1);
    if (equal(workspace, each, item)) return true;
  }
  return false;
}

bool Evaluator::holds(Comparison comparison, const Value& left, const Value& right) {
  switch (comparison) {
    case Comparison::Equal: return equal(workspace, left, right);
    case Comparison::NotEqual: return !equal(workspace, left, right);
    case Comparison::Less: return compare(workspace, left, right, "<") == -1;
    case Comparison::LessEqual: return compare(workspace, left, right, "<=") <= 0;
    case Comparison::Greater: return compare(workspace, left, right, ">") == 1;
    case Comparison::GreaterEqual: {
      const int order = compare(workspace, left, right, ">=");
      return order == 0 || order == 1;
    }
    case Comparison::In: return contains(right, left);
    case Comparison::NotIn: break;
  }
  return !contains(right, left);
}

// --- arithmetic

namespace {

[[noreturn]] void divide_by_zero(const char* what) { throw Failure(joined("ZeroDivisionError: ", what)); }

Value float_arithmetic(Arithmetic op, double x, double y) {
  switch (op) {
    case Arithmetic::Add: return Value::of_float(x + y);
    case Arithmetic::Subtract: return Value::of_float(x - y);
    case Arithmetic::Multiply: return Value::of_float(x * y);
    case Arithmetic::Divide:
      if (y == 0) divide_by_zero("float division by zero");
      return Value::of_float(x / y);
    case Arithmetic::Power: {
      if (x == 0 && y < 0) divide_by_zero("0.0 cannot be raised to a negative power");
      if (x < 0 && std::isfinite(y) && y != std::floor(y)) type_error("complex numbers are not supported");
      const double power = std::pow(x, y);
      if (std::isinf(power) && std::isfinite(x) && std::isfinite(y))
        throw Failure("OverflowError: (34, 'Numerical result out of range')");
      return Value::of_float(power);
    }
    default: break;
  }
  if (y == 0) divide_by_zero(op == Arithmetic::Modulo ? "float modulo" : "float floor division by zero");
  double rest = std::fmod(x, y), quotient = (x - rest) / y;
  if (rest != 0) {
    if ((y < 0) != (rest < 0)) {
      rest += y;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, y);
  }
  if (op == Arithmetic::Modulo) return Value::of_float(rest);
  if (quotient == 0) return Value::of_float(std::copysign(0.0, x / y));
  const double floor = std::floor(quotient);
  return Value::of_float(quotient - floor > 0.5 ? floor + 1 : floor);
}

const char* sign_of(Arithmetic op) {
  static constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
  return kSigns[static_cast<size_t>(op)];
}

// `out` times the `exponent`-th power of `factor`; true: that has more than 64 bits.
bool power_overflows(int64_t factor, int64_t exponent, int64_t& out) {
  for (; exponent; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(out, factor, &out)) return true;
    if (exponent > 1 && __builtin_mul_overflow(factor, factor, &factor)) return true;
  }
  return false;
}

Value integer_arithmetic(Arithmetic op, int64_t x, int64_t y) {
  int64_t out = 1;
  bool overflows = false;
  switch (op) {
    case Arithmetic::Add: overflows = __builtin_add_overflow(x, y, &out); break;
    case Arithmetic::Subtract: overflows = __builtin_sub_overflow(x, y, &out); break;
    case Arithmetic::Multiply: overflows = __builtin_mul_overflow(x, y, &out); break;
    case Arithmetic::Divide:
      if (!y) divide_by_zero("division by zero");
      return Value::of_float(static_cast<double>(static_cast<long double>(x) / static_cast<long double>(y)));
    case Arithmetic::FloorDivide:
    case Arithmetic::Modulo:
      if (!y) divide_by_zero("integer division or modulo by zero");
      overflows = x == INT64_MIN && y == -1;
      if (overflows) break;
      out = op == Arithmetic::Modulo ? x % y : x / y;
      if (x % y != 0 && (x < 0) != (y < 0)) out += op == Arithmetic::Modulo ? y : -1;
      break;
    case Arithmetic::Power:
      if (y < 0) return float_arithmetic(op, static_cast<double>(x), static_cast<double>(y));
      overflows = power_overflows(x, y, out);
  }
  if (overflows) beyond_64_bits(sign_of(op));
  return Value::of_int(out);
}

}  // namespace

Value Evaluator::arithmetic(Arithmetic op, const Value& left, const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.kind == Kind::BigInt || right.kind == Kind::BigInt) beyond_64_bits(sign_of(op));
    if (left.kind == Kind::Float || right.kind == Kind::Float)
      return float_arithmetic(op, left.as_float(), right.as_float());
    return integer_arithmetic(op, left.integer, right.integer);
  }
  if (left.is_undefined()) fail_undefined(left);
  if (op == Arithmetic::Modulo && left.is_text()) return format_percent(*this, left, right);
  if (right.is_undefined()) fail_undefined(right);
  if (op == Arithmetic::Add) {
    if (left.is_text() && right.is_text()) {
      if (!left.detail && !right.detail) return Value::of_text(workspace.concat(left.text, right.text));
      const auto markup = [&](const Value& v) { return v.detail ? v.text : escape(workspace, v.text); };
      return Value::of_text(workspace.concat(markup(left), markup(right)), true);
    }
    if (left.kind == right.kind && (left.kind == Kind::List || left.kind == Kind::Tuple)) {
      workspace.spend(left.list->size + right.list->size);
      List* const list = List::make(workspace, left.list->size + right.list->size);
      for (const List* const part : {left.list, right.list})
        for (uint32_t i = 0; i < part->size; i++) list->add(workspace, part->items[i]);
      return left.kind == Kind::Tuple ? Value::of_tuple(list) : Value::of_list(list);
    }
    if (left.is_text() || left.kind == Kind::List || left.kind == Kind::Tuple) {
      const std::string kind = left.is_text() ? "str" : type_name(left);
      type_error("can only concatenate ", kind, " (not \"", type_name(right), "\") to ", kind);
    }
  }
  if (op == Arithmetic::Multiply && (left.is_integer() || right.is_integer())) {
    const Value& what = left.is_integer() ? right : left;
    const int64_t times = left.is_integer() ? left.integer : right.integer;
    if (what.is_text()) return Value::of_text(repeat(workspace, what.text, times), what.detail);
    if (what.kind == Kind::List || what.kind == Kind::Tuple) {
      const uint64_t size = times > 0 ? what.list->size : 0;
      if (size && static_cast<uint64_t>(times) > UINT32_MAX / 64 / size)
        throw Failure("OverflowError: a list is too long");
      workspace.spend(size * static_cast<uint64_t>(std::max<int64_t>(times, 0)));
      List* const list =
          List::make(workspace, static_cast<uint32_t>(size * static_cast<uint64_t>(std::max<int64_t>(times, 0))));
      for (int64_t n = 0; size && n < times; n++)
        for (uint32_t i = 0; i < size; i++) list->add(workspace, what.list->items[i]);
      return what.kind == Kind::Tuple ? Value::of_tuple(list) : Value::of_list(list);
    }
  }
  if (op == Arithmetic::Multiply && (left.is_text() || left.kind == Kind::List || left.kind == Kind::Tuple))
    type_error("can't multiply sequence by non-int of type '", type_name(right), "'");
  type_error("unsupported operand type(s) for ", sign_of(op), ": '", type_name(left), "' and '", type_name(right), "'");
}

}  // namespace tokenweir::templates
