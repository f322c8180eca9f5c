// Parses a JSON number as HuggingFace's library does (tokenizers 0.23.3: serde_json without `float_roundtrip`).
//
// That parser reads the digits as one 64-bit integer, ignores those that do not fit, and multiplies or divides by a
// power of ten. This rounds two or three times, where a correct parser rounds once. So many scores of a Unigram model
// differ in the last place, and sums that tie under one parser do not tie under the other.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokenweir {

class JsonNumber {
 public:
  // Returns nullopt if `text` is not a JSON number, or too large for a double.
  static std::optional<double> read(std::string_view text) {
    JsonNumber number{text.data(), text.data() + text.size()};
    const bool negative = number.eat('-');
    const char* const begin = number.p_;
    if (!number.digits(1, 0) || (*begin == '0' && number.p_ - begin > 1)) return {};
    if (number.eat('.')) {
      number.full_ = false;
      if (!number.digits(0, -1)) return {};
    }
    if ((number.eat('e') || number.eat('E')) && !number.read_exponent()) return {};
    if (number.p_ != number.end_) return {};
    const std::optional<double> value = number.value();
    return value && negative ? -*value : value;
  }

 private:
  static constexpr int64_t kFar = int64_t{1} << 31;  // exponents saturate here

  JsonNumber(const char* p, const char* end) : p_(p), end_(end) {}

  bool eat(char c) { return p_ < end_ && *p_ == c && ++p_; }

  // Reads one or more digits. Each adds `taken` to the exponent, or `ignored` if it no longer fits.
  bool digits(int64_t ignored, int64_t taken) {
    const char* const begin = p_;
    for (; p_ < end_ && *p_ >= '0' && *p_ <= '9'; p_++) {
      const uint64_t digit = static_cast<uint64_t>(*p_ - '0');
      full_ = full_ || significand_ > (UINT64_MAX - digit) / 10;
      if (!full_) significand_ = significand_ * 10 + digit;
      exponent_ += full_ ? ignored : taken;
    }
    return p_ > begin;
  }

  bool read_exponent() {
    const bool negative = eat('-');
    if (!negative) eat('+');
    const char* const begin = p_;
    int64_t exponent = 0;
    for (; p_ < end_ && *p_ >= '0' && *p_ <= '9'; p_++)
      if (exponent < kFar) exponent = exponent * 10 + (*p_ - '0');
    exponent_ += negative ? -exponent : exponent;
    return p_ > begin;
  }

  std::optional<double> value() const {
    static const std::array<double, 309> powers = [] {
      std::array<double, 309> all{};
      for (size_t i = 0; i < all.size(); i++) {
        const std::string text = "1e" + std::to_string(i);
        std::from_chars(text.data(), text.data() + text.size(), all[i]);
      }
      return all;
    }();
    double result = static_cast<double>(significand_);
    int64_t exponent = exponent_;
    for (; result != 0 && exponent < -308; exponent += 308) result /= powers[308];
    if (result == 0) return result;
    if (exponent > 308) return {};
    if (exponent < 0) return result / powers[static_cast<size_t>(-exponent)];
    result *= powers[static_cast<size_t>(exponent)];
    return std::isinf(result) ? std::nullopt : std::optional(result);
  }

  const char *p_, *end_;
  uint64_t significand_ = 0;
  int64_t exponent_ = 0;
  bool full_ = false;  // further digits are ignored
};

}  // namespace tokenweir
