#include <utility>

#include "language/token.h"
#include "text/characters.h"
#include "text/failure.h"

namespace tokenweir::templates {
namespace {

constexpr size_t kMostTokens = 200'000;

// \r\n and \r become \n, and one \n at the end is dropped.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); i++) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') i++;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : storage_(normalized(source)), source_(storage_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t tag = find_tag();
      if (tag == source_.npos) {
        data(at_, source_.size());
        break;
      }
      open(tag);
    }
    if (!tokens_.empty()) line_ = tokens_.back().line;
    add(Token::Type::End, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Failure(what, line_); }

  void add(Token::Type type, std::string text) {
    if (tokens_.size() == kMostTokens)
      fail("the template has more than the limit of " + std::to_string(kMostTokens) + " tokens");
    tokens_.push_back({type, line_, std::move(text), {}});
  }

  // Moves to `to`, counting lines.
  void advance(size_t to) {
    for (; at_ < to; at_++) line_ += source_[at_] == '\n';
  }

  bool starts(size_t at, std::string_view text) const { return source_.substr(at, text.size()) == text; }
  char char_at(size_t at) const { return at < source_.size() ? source_[at] : '\0'; }

  // The sign with which a tag asks for the white space beside it; '\0' without one.
  char sign_at(size_t at) const { return char_at(at) == '-' || char_at(at) == '+' ? source_[at] : '\0'; }

  size_t after_space(size_t at) const {
    while (at < source_.size()) {
      size_t next = at;
      if (!is_space(next_character(source_, next))) break;
      at = next;
    }
    return at;
  }

  size_t before_space(size_t end, size_t begin) const {
    while (end > begin) {
      const size_t start = previous_character(source_, end);
      size_t next = start;
      if (!is_space(next_character(source_, next))) break;
      end = start;
    }
    return end;
  }

  size_t find_tag() const {
    for (size_t at = at_; (at = source_.find('{', at)) != source_.npos; at++) {
      const char c = char_at(at + 1);
      if (c == '{' || c == '%' || c == '#') return at;
    }
    return source_.npos;
  }

  void data(size_t begin, size_t end) {
    if (end > begin) add(Token::Type::Data, std::string(source_.substr(begin, end - begin)));
    advance(end);
  }

  // The text before a tag, without the white space that the tag takes.
  void data_before(size_t tag, char sign, bool is_variable) {
    const size_t begin = at_;
    size_t end = tag;
    if (sign == '-') {
      end = before_space(tag, begin);
    } else if (sign != '+' && !is_variable) {
      const size_t feed = source_.substr(begin, tag - begin).rfind('\n');
      const size_t line = feed == source_.npos ? begin : begin + feed + 1;
      if ((feed != source_.npos || line_starts_) && after_space(line) >= tag) end = line;
    }
    data(begin, end);
    advance(tag);
  }

  void open(size_t tag) {
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    const size_t inside = tag + 2 + (sign != '\0');
    if (kind == '%')
      if (const size_t end = after_word(inside, "raw"); end != source_.npos && raw(tag, sign, end)) return;
    data_before(tag, sign, kind == '{');
    if (kind == '#') return comment(inside);
    add(kind == '{' ? Token::Type::VariableBegin : Token::Type::BlockBegin, "");
    advance(inside);
    expression(kind == '{' ? "}}" : "%}", kind == '{' ? Token::Type::VariableEnd : Token::Type::BlockEnd);
  }

  // The place behind white space, a word and white space; npos if there is no such word.
  size_t after_word(size_t at, std::string_view word) const {
    at = after_space(at);
    if (!starts(at, word)) return source_.npos;
    const size_t end = at + word.size();
    return after_space(end);
  }

  // The place behind the end of a block tag, with the white space that it takes; npos if none is here.
  size_t after_block_end(size_t at, bool trims) const {
    if (starts(at, "-%}")) return after_space(at + 3);
    if (trims && starts(at, "+%}")) return at + 3;
    if (!starts(at, "%}")) return source_.npos;
    return at + 2 + (trims && char_at(at + 2) == '\n');
  }

  // {% raw %}...{% endraw %}; false if the tag is another one.
  bool raw(size_t tag, char sign, size_t at) {
    const size_t begin = after_block_end(at, false);
    if (begin == source_.npos) return false;
    data_before(tag, sign, false);
    advance(begin);
    line_starts_ = source_[begin - 1] == '\n';
    for (size_t end = begin; (end = source_.find("{%", end)) != source_.npos; end++) {
      const char end_sign = sign_at(end + 2);
      const size_t close = after_word(end + 2 + (end_sign != '\0'), "endraw");
      const size_t next = close == source_.npos ? close : after_block_end(close, true);
      if (next == source_.npos) continue;
      data_before(end, end_sign, false);
      advance(next);
      line_starts_ = source_[next - 1] == '\n';
      return true;
    }
    fail("Missing end of raw directive");
  }

  void comment(size_t inside) {
    const size_t end = source_.find("#}", inside);
    if (end == source_.npos) fail("Missing end of comment tag");
    const char sign = end > inside ? source_[end - 1] : '\0';
    end_tag(end + 2, sign, sign != '+');
  }

  // Goes behind a tag, and behind the white space that it takes: with `trims` a line feed.
  void end_tag(size_t next, char sign, bool trims) {
    if (sign == '-')
      next = after_space(next);
    else if (trims && char_at(next) == '\n')
      next++;
    advance(next);
    line_starts_ = source_[next - 1] == '\n';
  }

  void expression(std::string_view close, Token::Type end_type) {
    std::string brackets;  // what closes those that are open
    for (;;) {
      advance(after_space(at_));
      if (at_ == source_.size()) fail("unexpected end of template, expected '" + std::string(close) + "'");
      if (brackets.empty()) {
        const char c = source_[at_];
        const bool block = close == "%}";
        if (starts(at_, close) || ((c == '-' || (c == '+' && block)) && starts(at_ + 1, close))) {
          add(end_type, "");
          return end_tag(at_ + (c == '-' || c == '+' ? 3 : 2), c, block && c == '%');
        }
      }
      token(brackets);
    }
  }

  void token(std::string& brackets) {
    const auto c = static_cast<uint8_t>(source_[at_]);
    if (is_ascii_digit(c)) return number();
    if (c == '"' || c == '\'') return string(static_cast<char>(c));
    size_t next = at_;
    if (starts_identifier(next_character(source_, next))) return name();
    constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    std::string_view op = source_.substr(at_, 1);
    for (const std::string_view two : kDouble)
      if (starts(at_, two)) op = two;
    if (op.size() == 1 && std::string_view("+-*/%~[](){}><=.:|,;").find(op[0]) == op.npos)
      fail("unexpected char '" + std::string(source_.substr(at_, utf8_length(c))) + "' at " + std::to_string(at_));
    if (op == "(" || op == "[" || op == "{") brackets += op == "(" ? ')' : op == "[" ? ']' : '}';
    if (op == ")" || op == "]" || op == "}") {
      if (brackets.empty()) fail("unexpected '" + std::string(op) + "'");
      if (brackets.back() != op[0]) fail("unexpected '" + std::string(op) + "', expected '" + brackets.back() + "'");
      brackets.pop_back();
    }
    add(Token::Type::Operator, std::string(op));
    at_ += op.size();
  }

  void name() {
    const size_t begin = at_;
    while (at_ < source_.size()) {
      size_t next = at_;
      if (!continues_identifier(next_character(source_, next))) break;
      at_ = next;
    }
    add(Token::Type::Name, std::string(source_.substr(begin, at_ - begin)));
  }

  // Digits with single underscores between them, appended to `out`.
  size_t digits(size_t at, std::string& out, unsigned base = 10) const {
    const auto is_one = [&](char c) { return digit_value(c) < base; };
    while (is_one(char_at(at)) || (char_at(at) == '_' && is_one(char_at(at + 1)))) {
      if (source_[at] != '_') out += source_[at];
      at++;
    }
    return at;
  }

  void number() {
    const char marker = static_cast<char>(char_at(at_ + 1) | 0x20);
    const unsigned base = source_[at_] != '0' ? 10 : marker == 'x' ? 16 : marker == 'o' ? 8 : marker == 'b' ? 2 : 10;
    std::string text;
    if (base != 10) {
      const size_t end = digits(at_ + 2, text, base);
      if (!text.empty()) {
        add(Token::Type::Integer, std::string(1, marker) + text);
        at_ = end;
        return;
      }
    }
    size_t end = digits(at_, text);
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    bool is_float = false;
    if (!after_dot && char_at(end) == '.' && is_ascii_digit(static_cast<uint8_t>(char_at(end + 1)))) {
      text += '.';
      end = digits(end + 1, text);
      is_float = true;
    }
    if (!after_dot && (char_at(end) | 0x20) == 'e') {
      size_t exponent = end + 1;
      std::string power = "e";
      if (char_at(exponent) == '+' || char_at(exponent) == '-') power += source_[exponent++];
      if (is_ascii_digit(static_cast<uint8_t>(char_at(exponent)))) {
        end = digits(exponent, power);
        text += power;
        is_float = true;
      }
    }
    if (!is_float && text[0] == '0' && text.find_first_not_of('0') != text.npos)
      fail("a whole number begins with 0: '" + text + "'");
    add(is_float ? Token::Type::Float : Token::Type::Integer, text);
    at_ = end;
  }

  void string(char quote) {
    const uint32_t line = line_;
    std::string out;
    size_t at = at_ + 1;
    for (;; at++) {
      if (at >= source_.size()) fail("a string is not closed");
      if (source_[at] == quote) break;
      if (source_[at] != '\\')
        out += source_[at];
      else
        unescape(at, out);
    }
    advance(at + 1);
    add(Token::Type::String, out);
    tokens_.back().line = line;
    tokens_.back().broken = std::exchange(broken_, {});
  }

  // Python's escapes; `at` stands at the backslash, and ends at the last character.
  void unescape(size_t& at, std::string& out) {
    if (++at >= source_.size()) fail("a string is not closed");
    const char c = source_[at];
    constexpr std::string_view kLetters = "ntrabfv\\'\"0", kMeanings = "\n\t\r\a\b\f\v\\'\"";
    if (const size_t which = kLetters.substr(0, 10).find(c); which != kLetters.npos) {
      out += kMeanings[which];
    } else if (c == '\n') {
      return;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      append_scalar(hexadecimal(at, c == 'x' ? 2 : c == 'u' ? 4 : 8), out);
    } else if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      for (int i = 0; i < 3 && char_at(at) >= '0' && char_at(at) <= '7'; i++)
        value = value * 8 + static_cast<uint32_t>(source_[at++] - '0');
      at--;
      append_scalar(value, out);
    } else if (c == 'N') {
      broken_ = "the escape \\N{...} in a string is not supported";
    } else {
      out += '\\';
      out += c;
    }
  }

  uint32_t hexadecimal(size_t& at, int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; i++) {
      const uint32_t digit = digit_value(char_at(++at));
      if (digit > 15) fail("an escape in a string is cut short");
      value = value << 4 | digit;
    }
    return value;
  }

  void append_scalar(uint32_t c, std::string& out) {
    if (c > 0x10FFFF) fail("an escape in a string is not a character");
    if (c >= 0xD800 && c < 0xE000)
      broken_ = "a string has a lone surrogate, which has no UTF-8 form";
    else
      append_character(c, out);
  }

  const std::string storage_;
  const std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::string broken_;       // of the string that is being read
  bool line_starts_ = true;  // the text at `at_` begins a line
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace tokenweir::templates
