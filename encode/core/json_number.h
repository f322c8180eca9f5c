// Numbers of a JSON file as HuggingFace's library reads them.
//
// serde_json without its `float_roundtrip` rounds twice: the digits, as many as 64 bits hold, become a double, which is
// multiplied or divided by a power of ten. One number in about four differs in its last bit from the nearest double,
// which decides between cuts of a Unigram model whose sums are mathematically equal. (serde_json 1.0, de.rs; checked
// against `tokenizers` 0.23.3.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "errors.h"

namespace tokenweir {

// `text` is a JSON number.
inline double json_number(std::string_view text) {
  size_t at = 0;
  const auto is_digit = [&] { return at < text.size() && text[at] >= '0' && text[at] <= '9'; };
  const bool negative = at < text.size() && text[at] == '-';
  at += negative;
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool full = false;
  const auto read = [&](int64_t dropped, int64_t kept) {
    for (; is_digit(); at++) {
      const uint64_t digit = static_cast<uint64_t>(text[at] - '0');
      full = full || digits > (UINT64_MAX - digit) / 10;
      if (!full) digits = digits * 10 + digit;
      exponent += full ? dropped : kept;
    }
  };
  read(1, 0);
  if (at < text.size() && text[at] == '.') {
    at++;
    read(0, -1);
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    at++;
    const bool down = at < text.size() && text[at] == '-';
    at += at < text.size() && (text[at] == '-' || text[at] == '+');
    int64_t power = 0;
    for (; is_digit(); at++) power = std::min<int64_t>(power * 10 + (text[at] - '0'), 1 << 20);
    exponent += down ? -power : power;
  }
  if (at != text.size() || text.empty()) throw FileError("\"" + std::string(text) + "\" is not a number");
  double value = static_cast<double>(digits);
  for (; exponent < -308 && value != 0; exponent += 308) value /= 1e308;
  if (value != 0 && exponent != 0) {
    if (exponent > 308) throw FileError("the number " + std::string(text) + " is too large");
    const double power = std::stod("1e" + std::to_string(std::abs(exponent)));
    value = exponent > 0 ? value * power : value / power;
  }
  if (std::isinf(value)) throw FileError("the number " + std::string(text) + " is too large");
  return negative ? -value : value;
}

}  // namespace tokenweir
