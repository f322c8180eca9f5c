// JSON as Python's `json` writes it, and a reader that keeps origins.
#pragma once

#include <set>
#include <string>

#include "values/value.h"

namespace tokenweir::templates {

class Origins;

struct JsonStyle {
  bool ascii = false;
  bool sorted = false;
  Text* indent = nullptr;  // of one level; null: all in one line
  Text* between_items = nullptr;
  Text* after_key = nullptr;
};

// json.dumps
Text* to_json(Workspace& workspace, const Value& value, const JsonStyle& style);

// The JSON that is accepted: Python's takes NaN and Infinity, and the loose one also control characters in strings.
enum class JsonDialect : uint8_t { Strict, Python, Loose };

// Reads the variables of a render, a JSON object: each string and each key gets an origin. `bytes` must live as long as the
// workspace. `vouched` are the names of variables that the caller vouches for.
Value read_variables(Workspace& workspace, Origins& origins, std::string_view bytes,
                     const std::set<std::string>& vouched);
// Reads a JSON list likewise, at a place of the input.
Value read_list(Workspace& workspace, Origins& origins, std::string_view bytes, uint32_t origin);
// Parses an input's text as json.loads does. Returns the object, with origins below the text's, or a missing value if
// the text is not the JSON of an object. `text` must live as long as the workspace. Lone surrogates are refused, or replaced by
// U+FFFD if `replaced` is given, which then tells whether there were any.
Value read_object_text(Workspace& workspace, Origins& origins, std::string_view text, uint32_t origin,
                       bool* replaced = nullptr);
// Reads the members at the beginning of a text that begins as an object and is not the JSON of one, as if it ended behind the
// last complete one; a missing value if it does not begin as an object. Text that this leaves out is told as not written.
Value save_object_text(Workspace& workspace, Origins& origins, std::string_view text, uint32_t origin);
// Reads text that a template has, as json.loads does: strings are slices of it.
Value parse_json(Workspace& workspace, Text* text);

}  // namespace tokenweir::templates
