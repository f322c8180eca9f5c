#include "format.h"

#include <charconv>
#include <cmath>

#include "characters.h"
#include "evaluator.h"
#include "text_edit.h"

namespace tokenweir::templates {
namespace {

constexpr int64_t kMostWidth = 1'000'000;

// How one value is laid out.
struct Layout {
  std::string fill = " ";
  char align = 0;       // <, >, ^, = or 0: by the kind
  char sign = '-';
  bool alternate = false, zeros = false;
  char grouping = 0;
  int64_t width = 0, precision = -1;
  char type = 0;
};

int64_t number_at(std::string_view text, size_t& at) {
  int64_t value = 0;
  while (at < text.size() && is_ascii_digit(static_cast<uint8_t>(text[at]))) {
    value = value * 10 + (text[at++] - '0');
    if (value > kMostWidth) value_error("a width or precision in a format is over the limit of " + std::to_string(kMostWidth));
  }
  return value;
}

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
  const auto end = std::to_chars(out.data(), out.data() + out.size(), number, form, lower == 'g' ? std::max(digits, 1) : digits).ptr;
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
    out.body = big_digits(value, base);
    negative = out.body[0] == '-';
    if (negative) out.body.erase(0, 1);
    if (type == 'X')
      for (char& c : out.body) c = static_cast<char>(is_ascii_lower(static_cast<uint8_t>(c)) ? c - 32 : c);
    if (layout.alternate && base != 10) out.prefix = std::string("0") + type;
  } else {
    double number = value.kind == Kind::BigInt ? big_to_float(value) : value.as_float();
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

Text* pad_text(Workspace& workspace, Text* text, const Layout& layout, char align) {
  const Side side = align == '<' ? Side::Left : align == '>' ? Side::Right : Side::Both;
  if (layout.width <= static_cast<int64_t>(workspace.length(text))) return text;
  if (align != '^') return pad(workspace, text, layout.width, workspace.copy(layout.fill), side);
  const int64_t missing = layout.width - static_cast<int64_t>(workspace.length(text));
  Rope rope(workspace);
  Text* const fill = workspace.copy(layout.fill);
  rope.add(repeat(workspace, fill, missing / 2));
  rope.add(text);
  rope.add(repeat(workspace, fill, missing - missing / 2));
  return rope.finish();
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

// --- %

class Percent {
 public:
  Percent(Evaluator& evaluator, const Value& text, const Value& values)
      : evaluator_(evaluator), workspace_(evaluator.workspace), text_(text), values_(values) {}

  Value run() {
    const std::string_view flat = workspace_.flat(text_.text);
    Slicer slice(workspace_, text_.text);
    Rope rope(workspace_);
    size_t done = 0;
    for (size_t at; (at = flat.find('%', done)) != flat.npos;) {
      rope.add(slice(done, at));
      workspace_.spend(1);
      size_t next = at + 1;
      Text* const made = conversion(flat, next);
      rope.add(made ? made : slice(next - 1, next));  // %%
      done = next;
    }
    rope.add(slice(done, flat.size()));
    const bool mapping = values_.kind == Kind::Dict || values_.kind == Kind::Undefined || values_.kind == Kind::List;
    if (values_.kind == Kind::Tuple ? used_ < values_.list->size : !used_ && !named_ && !mapping)
      type_error("not all arguments converted during string formatting");
    return Value::of_text(rope.finish(), text_.detail);
  }

 private:
  Value take() {
    if (values_.kind == Kind::Tuple) {
      if (used_ >= values_.list->size) type_error("not enough arguments for format string");
      return values_.list->items[used_++];
    }
    if (used_++) type_error("not enough arguments for format string");
    return values_;
  }

  Text* conversion(std::string_view flat, size_t& at) {
    Layout layout;
    Value value;
    if (at < flat.size() && flat[at] == '(') {
      const size_t end = flat.find(')', at);
      if (end == flat.npos) value_error("incomplete format key");
      if (values_.kind != Kind::Dict) type_error("format requires a mapping");
      const std::string_view key = flat.substr(at + 1, end - at - 1);
      const Symbol* const symbol = workspace_.symbols.find(key);
      const Value* const found = symbol ? values_.dict->find(symbol) : nullptr;
      if (!found) throw Failure("KeyError: '" + std::string(key) + "'");
      value = *found;
      named_ = true;
      at = end + 1;
    }
    bool left = false;
    for (; at < flat.size(); at++) {
      const char c = flat[at];
      if (c == '-') left = true;
      else if (c == '+' || (c == ' ' && layout.sign != '+')) layout.sign = c;
      else if (c == '#') layout.alternate = true;
      else if (c == '0') layout.zeros = true;
      else if (c != ' ') break;
    }
    const auto number = [&] {
      if (at < flat.size() && flat[at] == '*') {
        at++;
        const int64_t given = integer_argument(take(), "*");
        if (given > kMostWidth) value_error("a width or precision in a format is over the limit of " + std::to_string(kMostWidth));
        return given;
      }
      return number_at(flat, at);
    };
    layout.width = number();
    if (layout.width < 0) {
      left = true;
      layout.width = -layout.width;
    }
    if (at < flat.size() && flat[at] == '.') {
      at++;
      layout.precision = std::max<int64_t>(0, number());
    }
    while (at < flat.size() && (flat[at] == 'l' || flat[at] == 'h' || flat[at] == 'L')) at++;
    if (at == flat.size()) value_error("incomplete format");
    const char type = flat[at++];
    if (type == '%') return nullptr;
    if (value.is_missing()) value = take();
    layout.align = left ? '<' : 0;
    if (left) layout.zeros = false;
    return converted(value, type, layout);
  }

  Text* converted(const Value& value, char type, Layout layout) {
    if (type == 's' || type == 'r' || type == 'a' || type == 'c') {
      Text* text = type == 'c' ? character(value) : type == 's' ? to_text(workspace_, value) : repr(value);
      if (text_.detail && !(type == 's' && value.is_markup())) text = escape(workspace_, text);
      if (type != 'c' && layout.precision >= 0)
        text = workspace_.slice(text, 0, workspace_.byte_of(text, static_cast<size_t>(layout.precision)));
      return pad_text(workspace_, text, layout, layout.align ? layout.align : '>');
    }
    if (std::string_view("diuoxXeEfFgG").find(type) == std::string_view::npos)
      value_error(std::string("unsupported format character '") + type + "'");
    if (!value.is_number()) {
      const bool whole = std::string_view("diuoxX").find(type) != std::string_view::npos;
      if (whole) type_error(std::string("%") + type + " format: a real number is required, not " + type_name(value));
      type_error(std::string("must be real number, not ") + type_name(value));
    }
    layout.type = type == 'i' || type == 'u' ? 'd' : type;
    const bool whole = std::string_view("doxX").find(layout.type) != std::string_view::npos;
    if (whole && value.kind == Kind::Float) {
      if (layout.type != 'd') type_error(std::string("%") + type + " format: an integer is required, not float");
      return number_layout(workspace_, integer_of(workspace_, value.number), layout);
    }
    if (whole && layout.precision >= 0) {
      Layout digits;
      digits.type = layout.type;
      digits.zeros = true;
      const bool negative = value.kind == Kind::BigInt ? value.big->negative : value.integer < 0;
      digits.width = layout.precision + negative;
      return pad_text(workspace_, number_layout(workspace_, value, digits), layout, layout.align ? layout.align : '>');
    }
    return number_layout(workspace_, value, layout);
  }

  Text* repr(const Value& value) {
    Rope rope(workspace_);
    add_repr(workspace_, value, rope);
    return rope.finish();
  }

  Text* character(const Value& value) {
    if (value.is_text() && workspace_.length(value.text) == 1) return value.text;
    if (!value.is_integer()) type_error("%c requires int or char");
    if (value.integer < 0 || value.integer > 0x10FFFF || (value.integer >= 0xD800 && value.integer < 0xE000))
      throw Failure("OverflowError: %c arg not in range(0x110000)");
    std::string out;
    append_character(static_cast<uint32_t>(value.integer), out);
    return workspace_.copy(out, value.origin, 0, true);
  }

  Evaluator& evaluator_;
  Workspace& workspace_;
  const Value &text_, &values_;
  uint32_t used_ = 0;
  bool named_ = false;
};

// --- {}

class Braces {
 public:
  Braces(Evaluator& evaluator, const Value& text, const Arguments& arguments)
      : evaluator_(evaluator), workspace_(evaluator.workspace), text_(text), arguments_(arguments) {}

  Value run() {
    const std::string_view flat = workspace_.flat(text_.text);
    Slicer slice(workspace_, text_.text);
    Rope rope(workspace_);
    for (size_t at = 0; at < flat.size();) {
      const size_t brace = std::min(flat.find_first_of("{}", at), flat.size());
      rope.add(slice(at, brace));
      if (brace == flat.size()) break;
      workspace_.spend(1);
      if (brace + 1 < flat.size() && flat[brace + 1] == flat[brace]) {
        rope.add(slice(brace, brace + 1));
        at = brace + 2;
        continue;
      }
      if (flat[brace] == '}') value_error("Single '}' encountered in format string");
      size_t end = brace + 1;
      for (int depth = 1; depth; end++) {
        if (end == flat.size()) value_error("expected '}' before end of string");
        depth += flat[end] == '{' ? 1 : flat[end] == '}' ? -1 : 0;
      }
      rope.add(field(flat.substr(brace + 1, end - brace - 2)));
      at = end;
    }
    return Value::of_text(rope.finish(), text_.detail);
  }

 private:
  Text* field(std::string_view field) {
    const size_t name_end = std::min(field.find_first_of("!:"), field.size());
    Value value = named(field.substr(0, name_end));
    std::string_view rest = field.substr(name_end);
    if (!rest.empty() && rest[0] == '!') {
      const char conversion = rest.size() > 1 ? rest[1] : '\0';
      if (conversion == 's') value = Value::of_text(to_text(workspace_, value));
      else if (conversion != 'r') value_error("Unknown conversion specifier in a format");
      else {
        Rope rope(workspace_);
        add_repr(workspace_, value, rope);
        value = Value::of_text(rope.finish());
      }
      rest.remove_prefix(2);
    }
    std::string spec(rest.empty() ? rest : rest.substr(1));
    if (!rest.empty() && rest[0] != ':') value_error("expected ':' after conversion specifier");
    for (size_t open; (open = spec.find('{')) != spec.npos;) {
      const size_t close = spec.find('}', open);
      if (close == spec.npos) value_error("expected '}' before end of string");
      const std::string_view inner = workspace_.flat(to_text(workspace_, named(std::string_view(spec).substr(open + 1, close - open - 1))));
      spec.replace(open, close - open + 1, inner);
      if (inner.find('{') != inner.npos) value_error("Max string recursion exceeded");
    }
    Text* const text = laid_out(value, spec);
    return text_.detail && !value.is_markup() ? escape(workspace_, text) : text;
  }

  Value named(std::string_view name) {
    const size_t end = std::min(name.find_first_of(".["), name.size());
    const std::string_view first = name.substr(0, end);
    Value value;
    if (first.empty() || is_ascii_digit(static_cast<uint8_t>(first[0]))) {
      size_t at = 0;
      if (first.empty() == manual_ && numbered_)
        value_error("cannot switch between automatic field numbering and manual field specification");
      numbered_ = true;
      manual_ = !first.empty();
      const int64_t index = first.empty() ? next_++ : number_at(first, at);
      if (index >= arguments_.count)
        throw Failure("IndexError: Replacement index " + std::to_string(index) + " out of range for positional args tuple");
      value = arguments_.positional[index];
    } else {
      for (uint32_t i = 0; i < arguments_.named_count; i++)
        if (arguments_.names[i]->text == first) value = arguments_.named[i];
      if (value.is_missing()) throw Failure("KeyError: '" + std::string(first) + "'");
    }
    std::string_view rest = name.substr(end);
    while (!rest.empty()) {
      const bool dot = rest[0] == '.';
      const size_t stop = dot ? std::min(rest.find_first_of(".[", 1), rest.size()) : rest.find(']');
      if (stop == rest.npos) value_error("Missing ']' in format string");
      const std::string_view key = rest.substr(1, stop - 1);
      size_t at = 0;
      if (dot) value = evaluator_.attribute(value, workspace_.symbols.intern(key));
      else if (!key.empty() && is_ascii_digit(static_cast<uint8_t>(key[0]))) value = evaluator_.item(value, Value::of_int(number_at(key, at)), nullptr);
      else value = evaluator_.item(value, Value::of_text(workspace_.copy(key)), nullptr);
      rest.remove_prefix(dot ? stop : stop + 1);
    }
    return value;
  }

  Text* laid_out(const Value& value, std::string_view spec) {
    if (spec.empty()) return to_text(workspace_, value);
    if (!value.is_text() && !value.is_number())
      type_error(std::string("unsupported format string passed to ") + type_name(value) + ".__format__");
    const Layout layout = parsed(spec);
    if (value.is_text()) {
      if (layout.type && layout.type != 's') value_error(std::string("Unknown format code '") + layout.type + "' for object of type 'str'");
      Text* text = value.text;
      if (layout.precision >= 0) text = workspace_.slice(text, 0, workspace_.byte_of(text, static_cast<size_t>(layout.precision)));
      if (layout.align == '=') value_error("'=' alignment not allowed in string format specifier");
      Layout filled = layout;
      if (layout.zeros && layout.fill == " ") filled.fill = "0";
      return pad_text(workspace_, text, filled, layout.align ? layout.align : '<');
    }
    if (value.kind == Kind::Bool && !layout.type) return pad_text(workspace_, number_text(workspace_, value), layout, layout.align ? layout.align : '<');
    if (layout.type && std::string_view("dboxXnceEfFgG%").find(layout.type) == std::string_view::npos)
      value_error(std::string("Unknown format code '") + layout.type + "' for object of type '" + type_name(value) + "'");
    if (value.kind == Kind::Float && layout.type && std::string_view("dboxXc").find(layout.type) != std::string_view::npos)
      value_error(std::string("Unknown format code '") + layout.type + "' for object of type 'float'");
    if (layout.type == 'c') {
      std::string out;
      if (value.integer < 0 || value.integer > 0x10FFFF || (value.integer >= 0xD800 && value.integer < 0xE000))
        throw Failure("OverflowError: %c arg not in range(0x110000)");
      append_character(static_cast<uint32_t>(value.integer), out);
      return pad_text(workspace_, workspace_.copy(out, value.origin, 0, true), layout, layout.align ? layout.align : '<');
    }
    return number_layout(workspace_, value, layout);
  }

  static Layout parsed(std::string_view spec) {
    Layout layout;
    size_t at = 0, next = 0;
    const auto is_align = [&](size_t i) { return i < spec.size() && std::string_view("<>^=").find(spec[i]) != std::string_view::npos; };
    next_character(spec, next);
    if (is_align(next)) {
      layout.fill = spec.substr(0, next);
      layout.align = spec[next];
      at = next + 1;
    } else if (is_align(0)) {
      layout.align = spec[at++];
    }
    if (at < spec.size() && (spec[at] == '+' || spec[at] == '-' || spec[at] == ' ')) layout.sign = spec[at++];
    if (at < spec.size() && spec[at] == '#') {
      layout.alternate = true;
      at++;
    }
    if (at < spec.size() && spec[at] == '0') {
      layout.zeros = true;
      at++;
    }
    layout.width = number_at(spec, at);
    if (at < spec.size() && (spec[at] == ',' || spec[at] == '_')) layout.grouping = spec[at++];
    if (at < spec.size() && spec[at] == '.') {
      const size_t digits = ++at;
      layout.precision = number_at(spec, at);
      if (at == digits) value_error("Format specifier missing precision");
    }
    if (at < spec.size()) layout.type = spec[at++];
    if (at != spec.size()) value_error("Invalid format specifier '" + std::string(spec) + "'");
    return layout;
  }

  Evaluator& evaluator_;
  Workspace& workspace_;
  const Value& text_;
  const Arguments& arguments_;
  int64_t next_ = 0;
  bool numbered_ = false, manual_ = false;
};

}  // namespace

Value format_percent(Evaluator& evaluator, const Value& text, const Value& values) {
  return Percent(evaluator, text, values).run();
}

Value format_braces(Evaluator& evaluator, const Value& text, const Arguments& arguments) {
  return Braces(evaluator, text, arguments).run();
}

}  // namespace tokenweir::templates
