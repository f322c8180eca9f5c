#include "builtins/format_layout.h"

#include <charconv>
#include <cmath>

#include "text/characters.h"
#include "values/bigint.h"
#include "values/text_edit.h"

namespace tokenweir::templates {

int64_t number_at(std::string_view text, size_t& at) {
  int64_t value = 0;
  while (at < text.size() && is_ascii_digit(static_cast<uint8_t>(text[at]))) {
    value = value * 10 + (text[at++] - '0');
    if (value > kMostWidth) value_error("a width or precision in a format is over the limit of ", kMostWidth);
  }
  return value;
}

namespace {

// A number's digits in three parts that layout needs apart: sign, prefix, rest.
struct Digits {
  std::string sign, prefix, body;
};

std::string float_digits(double number, char type, int64_t precision, bool alternate) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return "inf";
  if (alternate) value_error("the flag # is not supported for floats");
  const char lower = static_cast<char>(type | 0x20);
  const auto form = lower == 'f'   ? std::chars_format::fixed
                    : lower == 'e' ? std::chars_format::scientific
                                   : std::chars_format::general;
  std::string out(static_cast<size_t>(std::min<int64_t>(precision, 400)) + 400, '\0');
  const int digits = static_cast<int>(std::min<int64_t>(precision, 400));
  const auto end =
      std::to_chars(out.data(), out.data() + out.size(), number, form, lower == 'g' ? std::max(digits, 1) : digits).ptr;
  out.resize(static_cast<size_t>(end - out.data()));
  if (type != lower)
    for (char& c : out) c = static_cast<char>(is_ascii_lower(static_cast<uint8_t>(c)) ? c - 32 : c);
  return out;
}

void group(std::string& body, char mark) {
  const size_t end = std::min(body.find_first_not_of("0123456789"), body.size());
  for (size_t at = end; at > 3; at -= 3) body.insert(at - 3, 1, mark);
}

Digits number_digits(const Value& value, const Layout& layout) {
  Digits out;
  char type = layout.type;
  const bool whole = value.kind != Kind::Float;
  bool negative;
  if (whole && (!type || std::string_view("dixXobn").find(type) != std::string_view::npos)) {
    const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    out.body = digits_of(value, base);
    negative = out.body[0] == '-';
    if (negative) out.body.erase(0, 1);
    if (type == 'X')
      for (char& c : out.body) c = static_cast<char>(is_ascii_lower(static_cast<uint8_t>(c)) ? c - 32 : c);
    if (layout.alternate && base != 10) out.prefix = std::string("0") + type;
  } else {
    double number = float_of(value);
    negative = std::signbit(number) && !std::isnan(number);
    number = std::fabs(number);
    if (type == '%') {
      out.body = float_digits(number * 100, 'f', layout.precision < 0 ? 6 : layout.precision, layout.alternate) + "%";
    } else if (!type && layout.precision < 0) {
      out.body = float_repr(number);
    } else {
      if (type == 'n' || !type) type = 'g';
      out.body = float_digits(number, type, layout.precision < 0 ? 6 : layout.precision, layout.alternate);
      if (!layout.type && out.body.find_first_of(".einf") == out.body.npos) out.body += ".0";
    }
  }
  if (layout.grouping) group(out.body, layout.grouping);
  out.sign = negative ? "-" : layout.sign == '-' ? "" : std::string(1, layout.sign);
  return out;
}

}  // namespace

Text* pad_text(Workspace& workspace, Text* text, const Layout& layout, char align) {
  const int64_t missing = layout.width - static_cast<int64_t>(workspace.length(text));
  if (missing <= 0) return text;
  const int64_t left = align == '<' ? 0 : align == '>' ? missing : missing / 2;
  return pad_by(workspace, text, left, missing - left, workspace.copy(layout.fill));
}

Text* character_of(Workspace& workspace, const Value& value) {
  if (value.integer < 0 || value.integer > 0x10FFFF || (value.integer >= 0xD800 && value.integer < 0xE000))
    throw Failure("OverflowError: %c arg not in range(0x110000)");
  std::string out;
  append_character(static_cast<uint32_t>(value.integer), out);
  return workspace.copy(out, value.origin, 0, true);
}

Text* number_layout(Workspace& workspace, const Value& value, const Layout& layout) {
  const Digits digits = number_digits(value, layout);
  std::string out = digits.sign + digits.prefix;
  const auto size = static_cast<int64_t>(out.size() + digits.body.size());
  const char align = layout.align ? layout.align : layout.zeros ? '=' : '>';
  if (align == '=' && size < layout.width)
    for (int64_t i = size; i < layout.width; i++) out += layout.zeros && layout.fill == " " ? "0" : layout.fill;
  out += digits.body;
  Text* const text = workspace.copy(out, value.origin, 0, true);
  return align == '=' ? text : pad_text(workspace, text, layout, align);
}

}  // namespace tokenweir::templates
