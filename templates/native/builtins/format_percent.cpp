// text % values
#include "builtins/format.h"
#include "builtins/format_layout.h"
#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/text_edit.h"

namespace tokenweir::templates {
namespace {

class Percent {
 public:
  Percent(Workspace& workspace, const Value& text, const Value& values)
      : workspace_(workspace), text_(text), values_(values) {}

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
      if (!found) throw Failure(joined("KeyError: '", key, "'"));
      value = *found;
      named_ = true;
      at = end + 1;
    }
    bool left = false;
    for (; at < flat.size(); at++) {
      const char c = flat[at];
      if (c == '-')
        left = true;
      else if (c == '+' || (c == ' ' && layout.sign != '+'))
        layout.sign = c;
      else if (c == '#')
        layout.alternate = true;
      else if (c == '0')
        layout.zeros = true;
      else if (c != ' ')
        break;
    }
    const auto number = [&] {
      if (at < flat.size() && flat[at] == '*') {
        at++;
        const int64_t given = integer_argument(take(), "*");
        if (given > kMostWidth) value_error("a width or precision in a format is over the limit of ", kMostWidth);
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
      Text* text = type == 'c' ? character(value) : type == 's' ? to_text(workspace_, value) : repr(workspace_, value);
      if (text_.detail && !(type == 's' && value.is_markup())) text = escape(workspace_, text);
      if (type != 'c' && layout.precision >= 0)
        text = workspace_.slice(text, 0, workspace_.byte_of(text, static_cast<size_t>(layout.precision)));
      return pad_text(workspace_, text, layout, layout.align ? layout.align : '>');
    }
    if (std::string_view("diuoxXeEfFgG").find(type) == std::string_view::npos)
      value_error("unsupported format character '", type, "'");
    if (!value.is_number()) {
      const bool whole = std::string_view("diuoxX").find(type) != std::string_view::npos;
      if (whole) type_error("%", type, " format: a real number is required, not ", type_name(value));
      type_error("must be real number, not ", type_name(value));
    }
    layout.type = type == 'i' || type == 'u' ? 'd' : type;
    const bool whole = std::string_view("doxX").find(layout.type) != std::string_view::npos;
    if (whole && value.kind == Kind::Float) {
      if (layout.type != 'd') type_error("%", type, " format: an integer is required, not float");
      return number_layout(workspace_, integer_of(value.number), layout);
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

  Text* character(const Value& value) {
    if (value.is_text() && workspace_.length(value.text) == 1) return value.text;
    if (!value.is_integer()) type_error("%c requires int or char");
    return character_of(workspace_, value);
  }

  Workspace& workspace_;
  const Value &text_, &values_;
  uint32_t used_ = 0;
  bool named_ = false;
};

}  // namespace

Value format_percent(Evaluator& evaluator, const Value& text, const Value& values) {
  return Percent(evaluator.workspace, text, values).run();
}

}  // namespace tokenweir::templates
