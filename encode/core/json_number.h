// Numbers in JSON as Rust's serde_json 1 reads them, which HuggingFace's library does.
//
// It is not the nearest double: the digits are an integer of 64 bits, further ones are dropped, and it is multiplied or
// divided by a power of ten, each step rounded. One score in four of a Unigram model differs in its last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"

namespace tokenweir {

class JsonNumber {
 public:
  // Nothing if `text` is no number, or too large.
  static std::optional<double> parse(std::string_view text) {
    JsonNumber number(text);
    const bool negative = number.take('-');
    if (!number.take_unsigned()) return {};
    double value = static_cast<double>(number.digits_);
    for (; number.exponent_ < -kMaxPower && value != 0; number.exponent_ += kMaxPower) value /= power(kMaxPower);
    if (number.exponent_ < 0)
      value /= power(static_cast<int>(std::min<int64_t>(-number.exponent_, kMaxPower)));
    else if (value != 0)
      value *= number.exponent_ > kMaxPower ? HUGE_VAL : power(static_cast<int>(number.exponent_));
    if (std::isinf(value)) return {};
    return negative ? -value : value;
  }

 private:
  static constexpr int kMaxPower = 308;
  static constexpr int64_t kMaxExponent = INT32_MAX;

  explicit JsonNumber(std::string_view text) : p_(text.data()), end_(p_ + text.size()) {}

  // The nearest double to a power of ten.
  static double power(int exponent) {
    struct Powers {
      double of[kMaxPower + 1];
      Powers() {
        for (int i = 0; i <= kMaxPower; i++) of[i] = std::strtod(("1e" + std::to_string(i)).c_str(), nullptr);
      }
    };
    static const Powers powers;
    return powers.of[exponent];
  }

  bool take(char c) { return p_ < end_ && *p_ == c && ++p_; }
  bool at_digit() const { return p_ < end_ && *p_ >= '0' && *p_ <= '9'; }

  // Takes all of the text but its sign; false if that is no number.
  bool take_unsigned() {
    if (!at_digit() || (*p_ == '0' && p_ + 1 < end_ && p_[1] >= '0' && p_[1] <= '9')) return false;
    for (; at_digit(); p_++)
      if (!add(*p_ - '0')) exponent_++;
    if (take('.')) {
      if (!at_digit()) return false;
      for (full_ = false; at_digit(); p_++)
        if (add(*p_ - '0')) exponent_--;
    }
    if (take('e') || take('E')) {
      const bool negative = take('-');
      if (!negative) take('+');
      if (!at_digit()) return false;
      int64_t exponent = 0;
      for (; at_digit(); p_++) exponent = std::min(exponent * 10 + (*p_ - '0'), kMaxExponent);
      exponent_ += negative ? -exponent : exponent;
    }
    return p_ == end_;
  }

  // Appends a digit; false if it does not fit, or one before it did not.
  bool add(int digit) {
    const uint64_t d = static_cast<uint64_t>(digit);
    full_ = full_ || digits_ > (UINT64_MAX - d) / 10;
    if (!full_) digits_ = digits_ * 10 + d;
    return !full_;
  }

  const char *p_, *end_;
  uint64_t digits_ = 0;
  int64_t exponent_ = 0;
  bool full_ = false;
};

// The numbers in JSON, in order, whatever they are in.
inline std::vector<double> json_numbers(std::string_view json) {
  std::vector<double> numbers;
  for (size_t i = 0; i < json.size(); i++) {
    if (json[i] == '"') {
      for (i++; i < json.size() && json[i] != '"'; i++) i += json[i] == '\\';
    } else if (json[i] == '-' || (json[i] >= '0' && json[i] <= '9')) {
      const std::string_view text = json.substr(i, json.find_first_of(" \t\r\n,]}", i) - i);
      const auto number = JsonNumber::parse(text);
      if (!number) throw FileError(std::string(text.substr(0, 60)) + " is out of range");
      numbers.push_back(*number);
      i += text.size() - 1;
    }
  }
  return numbers;
}

}  // namespace tokenweir
