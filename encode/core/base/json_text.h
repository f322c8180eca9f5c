// A pull parser of JSON, for parts of a file with a hundred thousand entries: it makes no object for each.
//
// It accepts valid JSON only, and does not report errors in detail: the parser of the whole file does that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "base/utf8_replace.h"

namespace tokenweir {

class JsonText {
 public:
  explicit JsonText(std::string_view text) : p_(begin(text)), end_(p_ + text.size()) {}

  // Skips white space, and takes `symbol` (one of []{},:) if it comes next.
  bool take(char symbol) {
    skip_space();
    if (p_ == end_ || *p_ != static_cast<uint8_t>(symbol)) return false;
    p_++;
    return true;
  }

  // Whether only white space is left.
  bool ended() {
    skip_space();
    return p_ == end_;
  }

  // Takes a string and appends its value to `out`; false if no string comes next, or it is not UTF-8.
  bool string(std::string& out) {
    if (!take('"')) return false;
    for (;;) {
      const uint8_t* const first = p_;
      while (p_ < end_ && *p_ >= 0x20 && *p_ != '"' && *p_ != '\\') {
        if (*p_ < 0x80) {
          p_++;
          continue;
        }
        const Utf8Start start = utf8_start(p_, static_cast<size_t>(end_ - p_));
        if (start.kind != Utf8Start::kCharacter) return false;
        p_ += start.length;
      }
      out.append(reinterpret_cast<const char*>(first), static_cast<size_t>(p_ - first));
      if (p_ == end_ || *p_ < 0x20) return false;
      if (*p_++ == '"') return true;
      if (!escape(out)) return false;
    }
  }

  // Takes a whole number of up to 18 digits.
  bool integer(int64_t& value) {
    const std::string_view digits = number();
    const bool negative = !digits.empty() && digits[0] == '-';
    if (digits.size() == negative || digits.size() > 18 || (digits[negative] == '0' && digits.size() > 1u + negative))
      return false;
    value = 0;
    for (const char c : digits.substr(negative)) {
      if (c < '0' || c > '9') return false;
      value = value * 10 + (c - '0');
    }
    if (negative) value = -value;
    return true;
  }

  // Takes a run of the characters that numbers consist of.
  std::string_view number() {
    skip_space();
    const uint8_t* const first = p_;
    while (p_ < end_ && ((*p_ >= '0' && *p_ <= '9') || *p_ == '-' || *p_ == '+' || *p_ == '.' || (*p_ | 0x20) == 'e'))
      p_++;
    return {reinterpret_cast<const char*>(first), static_cast<size_t>(p_ - first)};
  }

 private:
  static const uint8_t* begin(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

  void skip_space() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t')) p_++;
  }

  // Takes the rest of an escape, after the backslash.
  bool escape(std::string& out) {
    if (p_ == end_) return false;
    const char c = static_cast<char>(*p_++);
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
      out += kMeanings[at];
      return true;
    }
    uint32_t character, low;
    if (c != 'u' || !unit(character)) return false;
    if (character >= 0xD800 && character < 0xE000) {  // a high surrogate, which a low one must follow
      if (character >= 0xDC00 || end_ - p_ < 2 || *p_++ != '\\' || *p_++ != 'u' || !unit(low)) return false;
      if (low < 0xDC00 || low >= 0xE000) return false;
      character = 0x10000 + ((character & 0x3FF) << 10 | (low & 0x3FF));
    }
    uint8_t bytes[4];
    out.append(reinterpret_cast<const char*>(bytes), utf8_encode(character, bytes));
    return true;
  }

  // Takes four hexadecimal digits.
  bool unit(uint32_t& value) {
    value = 0;
    if (end_ - p_ < 4) return false;
    for (int i = 0; i < 4; i++) {
      const uint32_t c = *p_++, digit = c - '0', letter = (c | 0x20) - 'a';
      if (digit > 9 && letter > 5) return false;
      value = value << 4 | (digit <= 9 ? digit : letter + 10);
    }
    return true;
  }

  const uint8_t *p_, *end_;
};

}  // namespace tokenweir
