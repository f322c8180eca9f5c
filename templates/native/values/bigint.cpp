#include "values/bigint.h"

#include <charconv>
#include <cmath>

namespace tokenweir::templates {

void beyond_64_bits(const std::string& construct) {
  throw Failure(joined(construct, " with whole numbers of more than 64 bits is not supported"));
}

Value integer_of(Workspace& workspace, std::string_view digits, unsigned base) {
  const bool negative = digits[0] == '-';
  if (digits[0] == '+') digits.remove_prefix(1);
  if (digits.size() > kMostDigits)
    value_error("Exceeds the limit (4300 digits) for integer string conversion: value has ", digits.size() - negative,
                " digits");
  workspace.spend(1 + digits.size() / 8);
  int64_t small;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), small, static_cast<int>(base)).ec == std::errc())
    return Value::of_int(small);
  if (base != 10) beyond_64_bits("base " + std::to_string(base));
  digits.remove_prefix(negative);
  digits.remove_prefix(digits.find_first_not_of('0'));
  char* const copy = workspace.arena.array<char>(digits.size());
  digits.copy(copy, digits.size());
  return Value::of(Kind::BigInt, &Value::big, workspace.arena.make<BigInt>(BigInt{negative, {copy, digits.size()}}));
}

Value integer_of(double number) {
  if (std::isnan(number)) value_error("cannot convert float NaN to integer");
  if (std::isinf(number)) throw Failure("OverflowError: cannot convert float infinity to integer");
  if (std::fabs(number) >= 0x1p63) beyond_64_bits("int");
  return Value::of_int(static_cast<int64_t>(number));
}

Value negated(Workspace& workspace, const Value& value) {
  if (value.kind == Kind::Float) return Value::of_float(-value.number);
  const std::string digits = digits_of(value);
  return integer_of(workspace, digits[0] == '-' ? digits.substr(1) : "-" + digits);
}

double float_of(const Value& value) {
  if (value.kind != Kind::BigInt) return value.as_float();
  const double number = std::strtod(digits_of(value).c_str(), nullptr);
  if (std::isinf(number)) throw Failure("OverflowError: int too large to convert to float");
  return number;
}

std::string digits_of(const Value& value, unsigned base) {
  if (value.kind == Kind::BigInt) {
    if (base != 10) beyond_64_bits("base " + std::to_string(base));
    return (value.big->negative ? "-" : "") + std::string(value.big->digits);
  }
  char digits[65];
  return {digits, std::to_chars(digits, digits + sizeof digits, value.integer, static_cast<int>(base)).ptr};
}

int compare_big(const Value& a, const Value& b) {
  if (a.kind == Kind::Float || b.kind == Kind::Float) {
    const Value& other = a.kind == Kind::Float ? a : b;
    if (std::isnan(other.number)) return 2;
    if (std::isinf(other.number)) return (other.number > 0) == (&other == &b) ? -1 : 1;
    const double x = float_of(a), y = float_of(b);
    return x < y ? -1 : x > y;
  }
  // As if an Int had no digits: its magnitude is below that of each BigInt.
  const auto magnitude = [](const Value& v) { return v.kind == Kind::BigInt ? v.big->digits : std::string_view(); };
  const auto sign = [](const Value& v) { return v.kind != Kind::BigInt ? 0 : v.big->negative ? -1 : 1; };
  if (sign(a) != sign(b)) return sign(a) < sign(b) ? -1 : 1;
  const std::string_view x = magnitude(a), y = magnitude(b);
  const int order = x.size() != y.size() ? (x.size() < y.size() ? -1 : 1) : x.compare(y);
  return order == 0 ? 0 : (order < 0) != (sign(a) < 0) ? -1 : 1;
}

}  // namespace tokenweir::templates
