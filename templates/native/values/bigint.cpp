#include "values/bigint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace tokenweir::templates {
namespace {

using Limbs = std::vector<uint32_t>;

constexpr size_t kMostLimbs = 1 << 14;  // half a million bits

struct Number {
  bool negative = false;
  Limbs limbs;
};

void trim(Limbs& limbs) {
  while (!limbs.empty() && !limbs.back()) limbs.pop_back();
}

Number number_of(const Value& value) {
  Number n;
  if (value.kind == Kind::BigInt) {
    n.negative = value.big->negative;
    n.limbs.assign(value.big->limbs, value.big->limbs + value.big->size);
    return n;
  }
  n.negative = value.integer < 0;
  uint64_t magnitude = n.negative ? 0 - static_cast<uint64_t>(value.integer) : static_cast<uint64_t>(value.integer);
  for (; magnitude; magnitude >>= 32) n.limbs.push_back(static_cast<uint32_t>(magnitude));
  return n;
}

Value value_of(Workspace& workspace, Number n) {
  trim(n.limbs);
  if (n.limbs.size() > kMostLimbs) throw Failure("OverflowError: a whole number has more than 500000 bits");
  if (n.limbs.size() <= 2) {
    const uint64_t low = n.limbs.empty() ? 0 : n.limbs[0], high = n.limbs.size() < 2 ? 0 : n.limbs[1];
    const uint64_t magnitude = high << 32 | low;
    if (magnitude < uint64_t{1} << 63 || (n.negative && magnitude == uint64_t{1} << 63))
      return Value::of_int(static_cast<int64_t>(n.negative ? 0 - magnitude : magnitude));
  }
  BigInt* const big = workspace.arena.make<BigInt>();
  big->negative = n.negative;
  big->size = static_cast<uint32_t>(n.limbs.size());
  big->limbs = workspace.arena.array<uint32_t>(n.limbs.size());
  std::copy(n.limbs.begin(), n.limbs.end(), big->limbs);
  Value v = Value::of(Kind::BigInt);
  v.big = big;
  return v;
}

int compare_limbs(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

Limbs sum(const Limbs& a, const Limbs& b) {
  Limbs out;
  uint64_t carry = 0;
  for (size_t i = 0; i < std::max(a.size(), b.size()) || carry; i++) {
    carry += (i < a.size() ? uint64_t{a[i]} : 0) + (i < b.size() ? uint64_t{b[i]} : 0);
    out.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  return out;
}

// a - b, where a is not below b.
Limbs difference(const Limbs& a, const Limbs& b) {
  Limbs out;
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); i++) {
    int64_t d = static_cast<int64_t>(a[i]) - (i < b.size() ? b[i] : 0) - borrow;
    borrow = d < 0;
    out.push_back(static_cast<uint32_t>(d + (borrow << 32)));
  }
  trim(out);
  return out;
}

Limbs product(Workspace& workspace, const Limbs& a, const Limbs& b) {
  workspace.spend(1 + a.size() * b.size() / 8);
  if (a.size() + b.size() > kMostLimbs) throw Failure("OverflowError: a whole number has more than 500000 bits");
  Limbs out(a.size() + b.size());
  for (size_t i = 0; i < a.size(); i++) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.size() || carry; j++) {
      carry += out[i + j] + (j < b.size() ? uint64_t{a[i]} * b[j] : 0);
      out[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  trim(out);
  return out;
}

uint32_t divide_small(Limbs& limbs, uint32_t divisor) {
  uint64_t rest = 0;
  for (size_t i = limbs.size(); i-- > 0;) {
    rest = rest << 32 | limbs[i];
    limbs[i] = static_cast<uint32_t>(rest / divisor);
    rest %= divisor;
  }
  trim(limbs);
  return static_cast<uint32_t>(rest);
}

// Bit by bit: numbers of this size are rare.
std::pair<Limbs, Limbs> divided(Workspace& workspace, const Limbs& a, const Limbs& b) {
  if (b.size() == 1) {
    Limbs quotient = a;
    const uint32_t rest = divide_small(quotient, b[0]);
    return {quotient, rest ? Limbs{rest} : Limbs{}};
  }
  Limbs quotient(a.size()), rest;
  for (size_t bit = a.size() * 32; bit-- > 0;) {
    workspace.spend(1 + rest.size() / 8);
    uint32_t carry = a[bit / 32] >> bit % 32 & 1;
    for (uint32_t& limb : rest) {
      const uint32_t next = limb >> 31;
      limb = limb << 1 | carry;
      carry = next;
    }
    if (carry) rest.push_back(carry);
    if (compare_limbs(rest, b) >= 0) {
      rest = difference(rest, b);
      quotient[bit / 32] |= 1u << bit % 32;
    }
  }
  trim(quotient);
  return {quotient, rest};
}

Number added(const Number& a, const Number& b, bool subtract) {
  const bool b_negative = b.negative != subtract;
  if (a.negative == b_negative) return {a.negative, sum(a.limbs, b.limbs)};
  if (compare_limbs(a.limbs, b.limbs) >= 0) return {a.negative, difference(a.limbs, b.limbs)};
  return {b_negative, difference(b.limbs, a.limbs)};
}

Number power(Workspace& workspace, const Number& base, uint64_t exponent) {
  Number out{base.negative && (exponent & 1), {1}};
  Limbs factor = base.limbs;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) out.limbs = product(workspace, out.limbs, factor);
    if (exponent > 1) factor = product(workspace, factor, factor);
  }
  return out;
}

}  // namespace

Value integer_of(Workspace& workspace, std::string_view digits, unsigned base) {
  Number n;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    n.negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  if (digits.size() > kMostDigits)
    value_error("Exceeds the limit (4300 digits) for integer string conversion: value has " +
                std::to_string(digits.size()) + " digits");
  workspace.spend(1 + digits.size() * digits.size() / 1024);
  // As many digits at once as fit into a limb.
  for (size_t at = 0; at < digits.size();) {
    uint32_t chunk = 0, scale = 1;
    for (; at < digits.size() && uint64_t{scale} * base <= UINT32_MAX; at++) {
      const char c = digits[at];
      chunk = chunk * base + static_cast<uint32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      scale *= base;
    }
    uint64_t carry = chunk;
    for (uint32_t& limb : n.limbs) {
      carry += uint64_t{limb} * scale;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry) n.limbs.push_back(static_cast<uint32_t>(carry));
  }
  return value_of(workspace, std::move(n));
}

Value integer_of(Workspace& workspace, double number) {
  if (std::isnan(number)) value_error("cannot convert float NaN to integer");
  if (std::isinf(number)) throw Failure("OverflowError: cannot convert float infinity to integer");
  int exponent;
  const double fraction = std::frexp(std::trunc(number), &exponent);
  const auto mantissa = static_cast<int64_t>(std::ldexp(fraction, 53));
  Number n = number_of(Value::of_int(mantissa));
  const int shift = exponent - 53;
  if (shift < 0) return Value::of_int(static_cast<int64_t>(number));
  Limbs shifted(static_cast<size_t>(shift) / 32);
  uint64_t carry = 0;
  for (const uint32_t limb : n.limbs) {
    carry |= uint64_t{limb} << shift % 32;
    shifted.push_back(static_cast<uint32_t>(carry));
    carry >>= 32;
  }
  if (carry) shifted.push_back(static_cast<uint32_t>(carry));
  n.limbs = std::move(shifted);
  return value_of(workspace, std::move(n));
}

Value big_arithmetic(Workspace& workspace, Arithmetic op, const Value& left, const Value& right) {
  const Number a = number_of(left), b = number_of(right);
  workspace.spend(1 + (a.limbs.size() + b.limbs.size()) / 8);
  switch (op) {
    case Arithmetic::Add: return value_of(workspace, added(a, b, false));
    case Arithmetic::Subtract: return value_of(workspace, added(a, b, true));
    case Arithmetic::Multiply:
      return value_of(workspace, {a.negative != b.negative, product(workspace, a.limbs, b.limbs)});
    case Arithmetic::Power: {
      if (b.limbs.size() > 1 && a.limbs.size() == 1 && a.limbs[0] > 1)
        throw Failure("OverflowError: a whole number has more than 500000 bits");
      return value_of(workspace, power(workspace, a, b.limbs.empty() ? 0 : b.limbs[0]));
    }
    default: break;
  }
  if (b.limbs.empty()) throw Failure("ZeroDivisionError: integer division or modulo by zero");
  auto [quotient, rest] = divided(workspace, a.limbs, b.limbs);
  const bool rounds_down = a.negative != b.negative && !rest.empty();
  if (op == Arithmetic::FloorDivide)
    return value_of(workspace, {a.negative != b.negative, rounds_down ? sum(quotient, {1}) : quotient});
  return value_of(workspace, {b.negative, rounds_down ? difference(b.limbs, rest) : rest});
}

Value negated(Workspace& workspace, const Value& value) {
  if (value.kind == Kind::Float) return Value::of_float(-value.number);
  Number n = number_of(value);
  n.negative = !n.negative && !n.limbs.empty();
  return value_of(workspace, std::move(n));
}

double big_to_float(const Value& value) {
  if (value.kind != Kind::BigInt) return value.as_float();
  const BigInt& big = *value.big;
  // 64 bits from the highest one, the last of which also tells of all bits below: rounding is right then.
  const Number n = number_of(value);
  const auto bits = static_cast<int>(big.size * 32 - static_cast<uint32_t>(__builtin_clz(big.limbs[big.size - 1])));
  uint64_t top = 0;
  for (int i = 0; i < 64; i++) {
    const int bit = bits - 1 - i;
    top = top << 1 | (bit >= 0 ? n.limbs[static_cast<size_t>(bit) / 32] >> bit % 32 & 1 : 0);
  }
  for (int bit = 0; bit < bits - 64; bit++) top |= n.limbs[static_cast<size_t>(bit) / 32] >> bit % 32 & 1;
  const double magnitude = std::ldexp(static_cast<double>(top), bits - 64);
  if (std::isinf(magnitude)) throw Failure("OverflowError: int too large to convert to float");
  return big.negative ? -magnitude : magnitude;
}

std::string big_digits(const Value& value, unsigned base) {
  if (value.kind != Kind::BigInt && base == 10) return std::to_string(value.integer);
  Number n = number_of(value);
  std::string out;
  while (!n.limbs.empty()) {
    const uint32_t digit = divide_small(n.limbs, base);
    out += static_cast<char>(digit < 10 ? '0' + digit : 'a' + digit - 10);
  }
  if (out.empty()) out = "0";
  if (base == 10 && out.size() > kMostDigits)
    value_error("Exceeds the limit (4300 digits) for integer string conversion");
  if (n.negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

int compare_big(const Value& a, const Value& b) {
  if (a.kind == Kind::Float || b.kind == Kind::Float) {
    const Value& other = a.kind == Kind::Float ? a : b;
    if (std::isnan(other.number)) return 2;
    if (std::isinf(other.number)) return (other.number > 0) == (&other == &b) ? -1 : 1;
    const double x = big_to_float(a), y = big_to_float(b);
    return x < y ? -1 : x > y;
  }
  const Number x = number_of(a), y = number_of(b);
  if (x.negative != y.negative) return x.negative ? -1 : 1;
  return x.negative ? compare_limbs(y.limbs, x.limbs) : compare_limbs(x.limbs, y.limbs);
}

}  // namespace tokenweir::templates
