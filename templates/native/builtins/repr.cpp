// str() and repr() of values.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "evaluate/evaluator.h"
#include "text/characters.h"
#include "values/bigint.h"
#include "values/filter.h"
#include "values/method.h"
#include "values/value.h"

namespace tokenweir::templates {

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  // The shortest digits as d.ddde±xx; Python lays them out without exponent from 1e-4 to 1e16.
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  std::string_view written(buffer, static_cast<size_t>(end - buffer));
  const bool negative = written[0] == '-';
  if (negative) written.remove_prefix(1);
  const size_t e = written.find('e');
  int exponent = std::atoi(std::string(written.substr(e + 1)).c_str());
  std::string digits;
  for (const char c : written.substr(0, e))
    if (c != '.') digits += c;
  std::string out = negative ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out.append(".").append(digits, 1);
    out += exponent < 0 ? "e-" : "e+";
    exponent = std::abs(exponent);
    if (exponent < 10) out += '0';
    return out + std::to_string(exponent);
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1) return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

Text* number_text(Workspace& workspace, const Value& value) {
  switch (value.kind) {
    case Kind::None: return workspace.leaf("None", value.origin, 0, 1, true);
    case Kind::Bool: return workspace.leaf(value.integer ? "True" : "False", value.origin, 0, 1, true);
    case Kind::Float: return workspace.copy(float_repr(value.number), value.origin, 0, true);
    default: return workspace.copy(digits_of(value), value.origin, 0, true);
  }
}

// The text of a leaf between quotes; false if it needs no escape.
static bool escape_repr(std::string_view text, char quote, std::string& out) {
  bool changed = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const uint32_t c = next_character(text, at);
    if (c == static_cast<uint8_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (!is_printable(c)) {
      char escaped[12];
      std::snprintf(escaped, sizeof escaped, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
      out += escaped;
    } else {
      out.append(text, start, at - start);
      continue;
    }
    changed = true;
  }
  return changed;
}

static void add_text_repr(Workspace& workspace, Text* text, Rope& rope) {
  const std::string_view flat = workspace.flat(text);
  workspace.spend(flat.size() / 8);
  const char quote = flat.find('\'') != flat.npos && flat.find('"') == flat.npos ? '"' : '\'';
  const std::string_view mark = quote == '"' ? "\"" : "'";
  rope.add(mark);
  workspace.leaves(text, [&](Text* leaf) {
    std::string escaped;
    rope.add(escape_repr({leaf->bytes, leaf->size}, quote, escaped)
                 ? workspace.copy(escaped, leaf->origin, leaf->offset, true)
                 : leaf);
  });
  rope.add(mark);
}

static void add_items(Workspace& workspace, const List& list, Rope& rope) {
  for (const Value& item : list) {
    if (&item != list.begin()) rope.add(", ");
    add_repr(workspace, item, rope);
  }
}

static void add_dict(Workspace& workspace, const Dict& dict, ViewKind shown, bool keys_too, Rope& rope) {
  for (const Entry& entry : dict) {
    if (&entry != dict.begin()) rope.add(", ");
    const bool pair = keys_too && shown == ViewKind::Items;
    if (pair) rope.add("(");
    if (shown != ViewKind::Values) add_repr(workspace, entry.key, rope);
    if (shown == ViewKind::Items) rope.add(pair ? ", " : ": ");
    if (shown != ViewKind::Keys) add_repr(workspace, entry.value, rope);
    if (pair) rope.add(")");
  }
}

void add_repr(Workspace& workspace, const Value& value, Rope& rope) {
  workspace.spend(1);
  Depth depth(workspace);
  switch (value.kind) {
    case Kind::Text:
      if (value.detail) rope.add("Markup(");
      add_text_repr(workspace, value.text, rope);
      if (value.detail) rope.add(")");
      return;
    case Kind::List:
      rope.add("[");
      add_items(workspace, *value.list, rope);
      rope.add("]");
      return;
    case Kind::Tuple:
      rope.add("(");
      add_items(workspace, *value.list, rope);
      rope.add(value.list->size == 1 ? ",)" : ")");
      return;
    case Kind::Dict:
      rope.add("{");
      add_dict(workspace, *value.dict, ViewKind::Items, false, rope);
      rope.add("}");
      return;
    case Kind::View:
      rope.add(value.detail == static_cast<uint8_t>(ViewKind::Keys)     ? "dict_keys(["
               : value.detail == static_cast<uint8_t>(ViewKind::Values) ? "dict_values(["
                                                                        : "dict_items([");
      add_dict(workspace, *value.dict, static_cast<ViewKind>(value.detail), true, rope);
      rope.add("])");
      return;
    case Kind::Namespace:
      rope.add("<Namespace {");
      add_dict(workspace, *value.dict, ViewKind::Items, false, rope);
      rope.add("}>");
      return;
    case Kind::Undefined:
    case Kind::Missing: rope.add("Undefined"); return;
    default: rope.add(to_text(workspace, value));
  }
}

Text* repr(Workspace& workspace, const Value& value) {
  Rope rope(workspace);
  add_repr(workspace, value, rope);
  return rope.finish();
}

Text* to_text(Workspace& workspace, const Value& value) {
  const auto engine = [&](const std::string& text) { return workspace.copy(text); };
  switch (value.kind) {
    case Kind::Text: return value.text;
    case Kind::Missing:
    case Kind::Undefined: return workspace.empty();
    case Kind::None:
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float:
    case Kind::BigInt: return number_text(workspace, value);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::View:
    case Kind::Namespace: return repr(workspace, value);
    case Kind::Range: {
      const Range& range = *value.range;
      std::string out = "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
      if (range.step != 1) out += ", " + std::to_string(range.step);
      return engine(out + ")");
    }
    case Kind::Generator: return workspace.engine("<generator object>");
    case Kind::Macro: return engine("<Macro '" + std::string(macro_name(*value.macro)) + "'>");
    case Kind::Method:
      return engine("<built-in method " + std::string(value.method->method->name) + " of " +
                    type_name(value.method->self) + " object>");
    case Kind::Loop: return engine(loop_text(*value.loop));
    case Kind::Function: return engine("<function " + std::string(value.function->name) + ">");
    case Kind::Cycler: return workspace.engine("<Cycler>");
    case Kind::Joiner: return workspace.engine("<Joiner>");
  }
  return workspace.empty();
}

}  // namespace tokenweir::templates
