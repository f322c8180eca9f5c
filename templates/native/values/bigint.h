// Whole numbers of more than 64 bits, as Python has them.
#pragma once

#include <string>
#include <string_view>

#include "values/value.h"

namespace tokenweir::templates {

// Limbs of 32 bits, the lowest first, without leading zeros. One that fits into 64 bits is a Kind::Int instead.
struct BigInt {
  bool negative;
  uint32_t size;
  uint32_t* limbs;
};

inline constexpr size_t kMostDigits = 4300;  // that Python reads or writes of a number

enum class Arithmetic : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };

// The number of decimal digits, which may begin with a sign. More than `kMostDigits` are refused.
Value integer_of(Workspace& workspace, std::string_view digits, unsigned base = 10);
// The whole part of a float that is finite.
Value integer_of(Workspace& workspace, double number);
// `left op right` of whole numbers of any size, except division, which makes a float.
Value big_arithmetic(Workspace& workspace, Arithmetic op, const Value& left, const Value& right);
Value negated(Workspace& workspace, const Value& value);
double big_to_float(const Value& value);
std::string big_digits(const Value& value, unsigned base = 10);
// Below, equal or above, of numbers of any kind.
int compare_big(const Value& a, const Value& b);

}  // namespace tokenweir::templates
