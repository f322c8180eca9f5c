#include "input/call_arguments.h"

#include "values/json.h"

namespace tokenweir::templates {

namespace {

Value as_json(Workspace& workspace, const Value& value) {
  const JsonStyle style{.between_items = workspace.engine(", "), .after_key = workspace.engine(": ")};
  return Value::of_text(to_json(workspace, value, style));
}

// Whether a text is blank or the JSON of None.
bool says_nothing(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  return first == text.npos || text.substr(first, text.find_last_not_of(kSpace) + 1 - first) == "null";
}

// The text that a text is the JSON of, as of clients that encode arguments twice; null for other texts.
Text* encoded_text(Workspace& workspace, Text* text) {
  if (!workspace.flat(text).starts_with('"')) return nullptr;
  try {
    const Value read = parse_json(workspace, text);
    return read.is_text() ? read.text : nullptr;
  } catch (const Failure&) {
    return nullptr;
  } catch (const BadText&) {
    return nullptr;
  }
}

}  // namespace

void convert_arguments(Workspace& workspace, Origins& origins, const MessageFields& fields, ArgumentForm form,
                       Dict& function, bool* replaced) {
  Value* const arguments = function.find(fields.arguments);
  if (!arguments) return;
  // OpenAI's clients send JSON text; most templates take the object and write JSON themselves, some fail with it.
  if (form == ArgumentForm::Object && arguments->is_text()) {
    const Value read =
        read_object_text(workspace, origins, workspace.flat(arguments->text), arguments->text->origin, replaced);
    if (!read.is_missing()) *arguments = read;
  } else if (form == ArgumentForm::Text && arguments->kind == Kind::Dict) {
    *arguments = as_json(workspace, *arguments);
  }
}

bool mend_arguments(Workspace& workspace, Origins& origins, const MessageFields& fields, ArgumentForm form,
                    Dict& function) {
  bool replaced = false;
  convert_arguments(workspace, origins, fields, form, function, &replaced);
  Value* const given = function.find(fields.arguments);
  if (given && given->kind == Kind::Dict) return replaced;
  const auto set = [&](const Value& value) { set_field(workspace, function, fields.arguments, value); };
  const Value none =
      form == ArgumentForm::Text ? Value::of_text(workspace.engine("{}")) : Value::of_dict(Dict::make(workspace, 4));
  const auto set_none = [&](uint32_t origin, bool is_lost) {
    set(none);
    if (origin >= Origins::kFirst) origins.at(origin).is_text = is_lost;
    return is_lost;
  };
  if (!given || given->is_none()) return set_none(kFromEngine, false);
  if (!given->is_text()) {
    if (form != ArgumentForm::Text) return set_none(given->origin, true);
    set(as_json(workspace, *given));
    return false;
  }
  const uint32_t origin = given->text->origin;
  std::string_view text = workspace.flat(given->text);
  if (Text* const encoded = form == ArgumentForm::Object ? encoded_text(workspace, given->text) : nullptr) {
    text = workspace.flat(encoded);
    if (const Value read = read_object_text(workspace, origins, text, origin, &replaced); !read.is_missing()) {
      set(read);
      return replaced;
    }
  }
  if (says_nothing(text)) return set_none(origin, false);
  if (form != ArgumentForm::Object) return false;
  const Value saved = save_object_text(workspace, origins, text, origin);
  if (saved.is_missing()) return set_none(origin, true);
  set(saved);
  return origins.at(origin).is_text;
}

}  // namespace tokenweir::templates
