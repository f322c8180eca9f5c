// text.format(...)
#include "builtins/format.h"
#include "builtins/format_layout.h"
#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/text_edit.h"

namespace tokenweir::templates {
namespace {

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
      if (conversion != 's' && conversion != 'r') value_error("Unknown conversion specifier in a format");
      value = Value::of_text((conversion == 's' ? to_text : repr)(workspace_, value));
      rest.remove_prefix(2);
    }
    std::string spec(rest.empty() ? rest : rest.substr(1));
    if (!rest.empty() && rest[0] != ':') value_error("expected ':' after conversion specifier");
    for (size_t open; (open = spec.find('{')) != spec.npos;) {
      const size_t close = spec.find('}', open);
      if (close == spec.npos) value_error("expected '}' before end of string");
      const std::string_view inner =
          workspace_.flat(to_text(workspace_, named(std::string_view(spec).substr(open + 1, close - open - 1))));
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
        throw Failure(joined("IndexError: Replacement index ", index, " out of range for positional args tuple"));
      value = arguments_.positional[index];
    } else {
      for (uint32_t i = 0; i < arguments_.named_count; i++)
        if (arguments_.names[i]->text == first) value = arguments_.named[i];
      if (value.is_missing()) throw Failure(joined("KeyError: '", first, "'"));
    }
    std::string_view rest = name.substr(end);
    while (!rest.empty()) {
      const bool dot = rest[0] == '.';
      const size_t stop = dot ? std::min(rest.find_first_of(".[", 1), rest.size()) : rest.find(']');
      if (stop == rest.npos) value_error("Missing ']' in format string");
      const std::string_view key = rest.substr(1, stop - 1);
      size_t at = 0;
      if (dot)
        value = evaluator_.attribute(value, workspace_.symbols.intern(key));
      else if (!key.empty() && is_ascii_digit(static_cast<uint8_t>(key[0])))
        value = evaluator_.item(value, Value::of_int(number_at(key, at)), nullptr);
      else
        value = evaluator_.item(value, Value::of_text(workspace_.copy(key)), nullptr);
      rest.remove_prefix(dot ? stop : stop + 1);
    }
    return value;
  }

  Text* laid_out(const Value& value, std::string_view spec) {
    if (spec.empty()) return to_text(workspace_, value);
    if (!value.is_text() && !value.is_number())
      type_error("unsupported format string passed to ", type_name(value), ".__format__");
    const Layout layout = parsed(spec);
    if (value.is_text()) {
      if (layout.type && layout.type != 's')
        value_error("Unknown format code '", layout.type, "' for object of type 'str'");
      Text* text = value.text;
      if (layout.precision >= 0)
        text = workspace_.slice(text, 0, workspace_.byte_of(text, static_cast<size_t>(layout.precision)));
      if (layout.align == '=') value_error("'=' alignment not allowed in string format specifier");
      Layout filled = layout;
      if (layout.zeros && layout.fill == " ") filled.fill = "0";
      return pad_text(workspace_, text, filled, layout.align ? layout.align : '<');
    }
    if (value.kind == Kind::Bool && !layout.type)
      return pad_text(workspace_, number_text(workspace_, value), layout, layout.align ? layout.align : '<');
    if (layout.type && std::string_view("dboxXnceEfFgG%").find(layout.type) == std::string_view::npos)
      value_error("Unknown format code '", layout.type, "' for object of type '", type_name(value), "'");
    if (value.kind == Kind::Float && layout.type &&
        std::string_view("dboxXc").find(layout.type) != std::string_view::npos)
      value_error("Unknown format code '", layout.type, "' for object of type 'float'");
    if (layout.type == 'c')
      return pad_text(workspace_, character_of(workspace_, value), layout, layout.align ? layout.align : '<');
    return number_layout(workspace_, value, layout);
  }

  static Layout parsed(std::string_view spec) {
    Layout layout;
    size_t at = 0, next = 0;
    const auto is_align = [&](size_t i) {
      return i < spec.size() && std::string_view("<>^=").find(spec[i]) != std::string_view::npos;
    };
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
    if (at != spec.size()) value_error("Invalid format specifier '", spec, "'");
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

Value format_braces(Evaluator& evaluator, const Value& text, const Arguments& arguments) {
  return Braces(evaluator, text, arguments).run();
}

}  // namespace tokenweir::templates
