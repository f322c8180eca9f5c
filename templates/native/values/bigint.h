// Whole numbers of more than 64 bits: exact digits, which are written and compared. There is no arithmetic on them.
#pragma once

#include <string>
#include <string_view>

#include "values/value.h"

namespace tokenweir::templates {

// Decimal digits without leading zeros. A number that fits into 64 bits is a Kind::Int instead.
struct BigInt {
  bool negative;
  std::string_view digits;
};

inline constexpr size_t kMostDigits = 4300;  // that Python reads or writes of a number

enum class Arithmetic : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };

// Refuses what would make, or take, a whole number of more than 64 bits; `construct` is its name.
[[noreturn]] void beyond_64_bits(const std::string& construct);
// The number of digits, which may begin with a sign. More than `kMostDigits` are refused, and long ones in other bases than 10.
Value integer_of(Workspace& workspace, std::string_view digits, unsigned base = 10);
// The whole part of a float.
Value integer_of(double number);
Value negated(Workspace& workspace, const Value& value);
// A number of any kind as a float.
double float_of(const Value& value);
// The digits of a whole number, with its sign.
std::string digits_of(const Value& value, unsigned base = 10);
// Below, equal or above, of numbers one of which is a BigInt; 2 beside a NaN.
int compare_big(const Value& a, const Value& b);

}  // namespace tokenweir::templates
