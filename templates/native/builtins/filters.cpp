// Filters of single values: text, numbers, JSON.
#include <charconv>
#include <cmath>

#include "builtins/filter_tables.h"
#include "builtins/format.h"
#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/json.h"
#include "values/method.h"
#include "values/text_edit.h"

namespace tokenweir::templates {

namespace {

// soft_str: markup stays markup.
Value soft_text(Evaluator& evaluator, const Value& value) {
  return value.is_text() ? value : Value::of_text(to_text(evaluator.workspace, value));
}

template <Case to>
Value cased(Evaluator& evaluator, const Value& subject, const Bound&) {
  const Value text = soft_text(evaluator, subject);
  return Value::of_text(change_case(evaluator.workspace, text.text, to), text.detail);
}

Value title(Evaluator& evaluator, const Value& subject, const Bound&) {
  return Value::of_text(title_words(evaluator.workspace, soft_text(evaluator, subject).text));
}

Value trim(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  const Value text = soft_text(evaluator, subject);
  Text* const set = bound[0].is_missing() || bound[0].is_none() ? nullptr : text_argument(bound[0], "strip arg");
  return Value::of_text(strip(evaluator.workspace, text.text, Side::Both, set), text.detail);
}

Value replaced(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const int64_t most = bound[2].is_none() ? -1 : integer_or(bound[2], -1, "count");
  return Value::of_text(replace(workspace, to_text(workspace, subject), to_text(workspace, bound[0]),
                                to_text(workspace, bound[1]), most));
}

Value indented(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  if (!subject.is_text()) {
    if (subject.is_undefined()) fail_undefined(subject);
    type_error("unsupported operand type(s) for +=: '", type_name(subject), "' and 'str'");
  }
  Text* const indention =
      bound[0].is_text() ? bound[0].text : spaces(evaluator.workspace, integer_or(bound[0], 4, "width"));
  return Value::of_text(
      indent(evaluator.workspace, subject.text, indention, truth_or(bound[1], false), truth_or(bound[2], false)),
      subject.detail);
}

Value centered(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const Value text = soft_text(evaluator, subject);
  return Value::of_text(pad(workspace, text.text, integer_or(bound[0], 80, "width"), workspace.engine(" "), Side::Both),
                        text.detail);
}

Value truncated(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  Text* const text = text_argument(subject, "the value to truncate");
  Text* const end = bound[2].is_missing() ? workspace.engine("...") : text_argument(bound[2], "end");
  const int64_t most = integer_or(bound[0], 255, "length"), end_size = length(workspace, Value::of_text(end));
  const int64_t leeway = bound[3].is_none() ? 5 : integer_or(bound[3], 5, "leeway");
  if (most < end_size) throw Failure(joined("AssertionError: expected length >= ", end_size, ", got ", most));
  if (leeway < 0) throw Failure(joined("AssertionError: expected leeway >= 0, got ", leeway));
  if (length(workspace, subject) <= most + leeway) return subject;
  Text* kept = workspace.slice(text, 0, workspace.byte_of(text, static_cast<size_t>(most - end_size)));
  if (!truth_or(bound[1], false)) {
    const std::string_view flat = workspace.flat(kept);
    if (const size_t space = find_last(workspace, flat, " ", 0, flat.size()); space != kNowhere)
      kept = workspace.slice(kept, 0, space);
  }
  return Value::of_text(workspace.concat(kept, end));
}

Value word_count(Evaluator& evaluator, const Value& subject, const Bound&) {
  return Value::of_int(count_words(evaluator.workspace, soft_text(evaluator, subject).text));
}

Value string(Evaluator& evaluator, const Value& subject, const Bound&) { return soft_text(evaluator, subject); }

Value safe(Evaluator& evaluator, const Value& subject, const Bound&) {
  return Value::of_text(to_text(evaluator.workspace, subject), true);
}

template <bool again>
Value escaped(Evaluator& evaluator, const Value& subject, const Bound&) {
  if (!again && subject.is_markup()) return subject;
  return Value::of_text(escape(evaluator.workspace, to_text(evaluator.workspace, subject)), true);
}

Value formatted(Evaluator& evaluator, const Value& subject, const Arguments& arguments) {
  Workspace& workspace = evaluator.workspace;
  if (arguments.count && arguments.named_count)
    throw Failure("can't handle positional and keyword arguments at the same time");
  const Value text = soft_text(evaluator, subject);
  if (arguments.named_count) {
    Dict* const dict = Dict::make(workspace, arguments.named_count);
    arguments.add_named_to(workspace, *dict);
    return format_percent(evaluator, text, Value::of_dict(dict));
  }
  List* const values = List::of(workspace, arguments.positional, arguments.count);
  return format_percent(evaluator, text, Value::of_tuple(values));
}

// --- numbers

// Digits as int() and float() take them: white space around, single underscores between digits, decimal digits only.
std::string number_source(Workspace& workspace, Text* text) {
  const std::string_view flat = workspace.flat(strip(workspace, text, Side::Both, nullptr));
  std::string out;
  for (size_t i = 0; i < flat.size(); i++) {
    if (static_cast<uint8_t>(flat[i]) >= 0x80) {
      const size_t start = i;
      const uint32_t c = next_character(flat, i);
      i--;
      if (is_decimal(c))
        out += static_cast<char>('0' + decimal_value(c));
      else
        out.append(flat, start, i + 1 - start);
      continue;
    }
    if (flat[i] == '_' && i > 0 && i + 1 < flat.size() && flat[i - 1] != '_' && flat[i + 1] != '_') continue;
    out += flat[i];
  }
  return out;
}

bool float_from(const std::string& source, double& out) {
  std::string_view text = source;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  std::string lower;
  for (const char c : text) lower += static_cast<char>(is_ascii_upper(static_cast<uint8_t>(c)) ? c + 32 : c);
  if (lower == "inf" || lower == "infinity")
    out = HUGE_VAL;
  else if (lower == "nan")
    out = std::nan("");
  else {
    if (lower.empty() || lower.find_first_not_of("0123456789.e+-") != lower.npos) return false;
    if (!is_ascii_digit(static_cast<uint8_t>(lower[0])) && lower[0] != '.') return false;
    const auto result = std::from_chars(lower.data(), lower.data() + lower.size(), out);
    if (result.ptr != lower.data() + lower.size()) return false;
    if (result.ec == std::errc::result_out_of_range)
      out = std::strtod(lower.c_str(), nullptr);
    else if (result.ec != std::errc())
      return false;
  }
  if (negative) out = -out;
  return true;
}

bool integer_from(Workspace& workspace, std::string source, int64_t base, Value& out) {
  std::string sign;
  if (!source.empty() && (source[0] == '-' || source[0] == '+')) {
    sign = source.substr(0, 1);
    source.erase(0, 1);
  }
  const char marker = source.size() > 1 && source[0] == '0' ? static_cast<char>(source[1] | 0x20) : '\0';
  const int64_t marked = marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 0;
  if (base == 0 || (marked && marked == base)) {
    base = marked ? marked : 10;
    if (marked) source.erase(0, 2);
  }
  if (source.empty() || base < 2 || base > 36) return false;
  for (const char c : source)
    if (digit_value(c) >= static_cast<uint32_t>(base)) return false;
  out = integer_of(workspace, sign + source, static_cast<unsigned>(base));
  return true;
}

Value to_int(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const Value otherwise = bound[0].is_missing() ? Value::of_int(0) : bound[0];
  Value made;
  double number;
  if (subject.is_text()) {
    const std::string source = number_source(workspace, subject.text);
    if (integer_from(workspace, source, integer_or(bound[1], 10, "base"), made)) return made;
    if (!float_from(source, number) || !std::isfinite(number)) return otherwise;
    return integer_of(number);
  }
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.kind == Kind::Float) {
    return std::isnan(subject.number) ? otherwise : integer_of(subject.number);
  }
  if (subject.kind == Kind::Bool) return Value::of_int(subject.integer);
  return subject.is_number() ? subject : otherwise;
}

Value to_float(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  double number;
  if (subject.is_undefined()) fail_undefined(subject);
  if (subject.is_text() && float_from(number_source(evaluator.workspace, subject.text), number))
    return Value::of_float(number);
  if (subject.is_number()) return Value::of_float(float_of(subject));
  return bound[0].is_missing() ? Value::of_float(0) : bound[0];
}

Value absolute(Evaluator& evaluator, const Value& subject, const Bound&) {
  if (subject.is_undefined()) fail_undefined(subject);
  if (!subject.is_number()) type_error("bad operand type for abs(): '", type_name(subject), "'");
  if (subject.kind == Kind::Float) return Value::of_float(std::fabs(subject.number));
  const bool negative = subject.kind == Kind::BigInt ? subject.big->negative : subject.integer < 0;
  return negative                     ? negated(evaluator.workspace, subject)
         : subject.kind == Kind::Bool ? Value::of_int(subject.integer)
                                      : subject;
}

double rounded_float(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 323) return number;
  if (digits < -308) return std::copysign(0.0, number);
  if (digits >= 0) {  // the exact decimal value is rounded, half to even
    char buffer[700];
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed, static_cast<int>(digits)).ptr;
    double out = number;
    std::from_chars(buffer, end, out);
    return out;
  }
  const double power = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(number / power) * power;
}

Value round(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  const int64_t digits = integer_or(bound[0], 0, "precision");
  const std::string method(bound[1].is_missing() ? "common" : workspace.flat(text_argument(bound[1], "method")));
  if (method != "common" && method != "ceil" && method != "floor")
    throw Failure("method must be common, ceil or floor");
  if (subject.is_undefined()) fail_undefined(subject);
  if (!subject.is_number()) type_error("type ", type_name(subject), " doesn't define __round__ method");
  const bool whole = subject.kind != Kind::Float;
  if (method == "common") {
    if (!whole) return Value::of_float(rounded_float(subject.number, digits));
    if (digits >= 0) return subject.kind == Kind::Bool ? Value::of_int(subject.integer) : subject;
    const Value power = evaluator.arithmetic(Arithmetic::Power, Value::of_int(10), Value::of_int(-digits));
    const Value rest = evaluator.arithmetic(Arithmetic::Modulo, subject, power);
    const Value down = evaluator.arithmetic(Arithmetic::Subtract, subject, rest);
    const int order = compare(workspace, evaluator.arithmetic(Arithmetic::Multiply, rest, Value::of_int(2)), power);
    const bool odd = truth(evaluator.arithmetic(
        Arithmetic::Modulo, evaluator.arithmetic(Arithmetic::FloorDivide, down, power), Value::of_int(2)));
    return order > 0 || (order == 0 && odd) ? evaluator.arithmetic(Arithmetic::Add, down, power) : down;
  }
  const Value power = evaluator.arithmetic(Arithmetic::Power, Value::of_int(10), Value::of_int(digits));
  const Value scaled = evaluator.arithmetic(Arithmetic::Multiply, subject, power);
  Value whole_part = scaled;
  if (scaled.kind == Kind::Float)
    whole_part = integer_of(method == "ceil" ? std::ceil(scaled.number) : std::floor(scaled.number));
  return evaluator.arithmetic(Arithmetic::Divide, whole_part, power);
}

// --- values

Value defaulted(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  if (!subject.is_undefined() && !(truth_or(bound[1], false) && !truth(subject))) return subject;
  return bound[0].is_missing() ? Value::of_text(evaluator.workspace.empty()) : bound[0];
}

Value size(Evaluator& evaluator, const Value& subject, const Bound&) {
  return Value::of_int(length(evaluator.workspace, subject));
}

Value attribute(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Symbol* const symbol = symbol_of(evaluator.workspace, text_argument(bound[0], "attribute name"));
  if (subject.kind == Kind::Dict && !method_of(subject, symbol))  // a key is no attribute here
    return Value::undefined_of(subject, Absent::Attribute, &Value::symbol, symbol);
  return evaluator.attribute(subject, symbol);
}

Value json(Evaluator& evaluator, const Value& subject, const Bound& bound) {
  Workspace& workspace = evaluator.workspace;
  JsonStyle style;
  style.ascii = truth_or(bound[0], false);
  style.sorted = truth_or(bound[3], false);
  if (bound[1].is_text())
    style.indent = bound[1].text;
  else if (!bound[1].is_missing() && !bound[1].is_none())
    style.indent = spaces(workspace, integer_argument(bound[1], "indent"));
  style.between_items = workspace.engine(style.indent ? "," : ", ");
  style.after_key = workspace.engine(": ");
  if (bound[2].is_sequence()) {
    if (bound[2].list->size != 2) value_error("separators must be two texts");
    style.between_items = text_argument(bound[2].list->items[0], "separators");
    style.after_key = text_argument(bound[2].list->items[1], "separators");
  } else if (!bound[2].is_missing() && !bound[2].is_none()) {
    type_error("cannot unpack non-iterable ", type_name(bound[2]), " object");
  }
  return Value::of_text(to_json(workspace, subject, style));
}

Value from_json(Evaluator& evaluator, const Value& subject, const Bound&) {
  if (!subject.is_text()) type_error("the JSON object must be str, bytes or bytearray, not ", type_name(subject));
  return parse_json(evaluator.workspace, subject.text);
}

}  // namespace

const std::vector<Filter>& value_filters() {
  static const std::vector<Filter> filters{
      {"abs", {}, absolute},
      {"attr", {{"name"}, 1}, attribute},
      {"capitalize", {}, cased<Case::Capitalize>},
      {"center", {{"width"}}, centered},
      {"count", {}, size},
      {"d", {{"default_value", "boolean"}}, defaulted},
      {"default", {{"default_value", "boolean"}}, defaulted},
      {"e", {}, escaped<false>},
      {"escape", {}, escaped<false>},
      {"float", {{"default"}}, to_float},
      {"forceescape", {}, escaped<true>},
      {"format", {}, nullptr, formatted},
      {"from_json", {}, from_json},
      {"fromjson", {}, from_json},
      {"indent", {{"width", "first", "blank"}}, indented},
      {"int", {{"default", "base"}}, to_int},
      {"length", {}, size},
      {"lower", {}, cased<Case::Lower>},
      {"replace", {{"old", "new", "count"}, 2}, replaced},
      {"round", {{"precision", "method"}}, round},
      {"safe", {}, safe},
      {"string", {}, string},
      {"title", {}, title},
      {"tojson", {{"ensure_ascii", "indent", "separators", "sort_keys"}}, json},
      {"trim", {{"chars"}}, trim},
      {"truncate", {{"length", "killwords", "end", "leeway"}}, truncated},
      {"upper", {}, cased<Case::Upper>},
      {"wordcount", {}, word_count},
  };
  return filters;
}

}  // namespace tokenweir::templates
