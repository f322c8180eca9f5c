#include "input/message_checks.h"

namespace tokenweir::templates {

namespace {

constexpr std::string_view kMessage = R"({"role": "user", "content": "..."})";
constexpr std::string_view kCall = R"({"type": "function", "function": {"name": "...", "arguments": {...}}})";
constexpr std::string_view kTool = R"({"type": "function", "function": {"name": "...", "parameters": {...}}})";

// The end of an error: what to write instead.
std::string wanted(std::string_view name, bool is_list) {
  const std::string_view item = name == "tools" ? kTool : name == "messages" ? kMessage : "";
  if (item.empty()) return "";
  return is_list ? ": write [" + std::string(item) + "]" : ": write " + std::string(item);
}

std::string shown(Workspace& workspace, const Value* value) {
  if (!value) return "None";
  Rope rope(workspace);
  add_repr(workspace, *value, rope);
  return std::string(workspace.flat(rope.finish()));
}

const Value* field(Workspace& workspace, const Value& value, std::string_view name) {
  const Symbol* const symbol = workspace.symbols.find(name);
  return symbol ? value.dict->find(symbol) : nullptr;
}

bool is_list(const Value& value) { return value.kind == Kind::List || value.kind == Kind::Tuple; }

void check_message(Workspace& workspace, const Value& message, const std::string& place,
                   const std::set<std::string>& roles) {
  const Value* const role = field(workspace, message, "role");
  if (!role || !role->is_text() || !roles.contains(std::string(workspace.flat(role->text)))) {
    std::string known;
    for (const std::string& each : roles) known += (known.empty() ? "" : ", ") + each;
    throw BadInput(place + ": role " + shown(workspace, role) + " is not one of " + known);
  }
  const std::string name(workspace.flat(role->text));
  const Value* const content = field(workspace, message, "content");
  if (!content || content->is_none()) {
    // An assistant's may be all calls or thinking.
    if (name != "assistant" || message.dict->size == 1)
      throw BadInput(place + " has no content: write {\"role\": \"" + name + "\", \"content\": \"...\"}");
  } else if (is_list(*content)) {
    for (uint32_t i = 0; i < content->list->size; i++)
      if (const Value& part = content->list->items[i]; part.kind != Kind::Dict && !part.is_text())
        throw BadInput(place + ".content[" + std::to_string(i) + "] must be a part, not " + type_name(part));
  } else if (!content->is_text()) {
    throw BadInput(place + ".content must be a string or a list of parts, not " + type_name(*content));
  }
  const Value* const calls = field(workspace, message, "tool_calls");
  if (!calls || calls->is_none()) return;
  bool are_calls = is_list(*calls);
  for (uint32_t i = 0; are_calls && i < calls->list->size; i++) are_calls = calls->list->items[i].kind == Kind::Dict;
  if (!are_calls) throw BadInput(place + ".tool_calls must be a list of calls: write [" + std::string(kCall) + "]");
}

}  // namespace

std::string not_a_list(const std::string& name, const std::string& type) {
  return name + " must be a list, not " + type + wanted(name, true);
}

std::string not_a_mapping(const std::string& place, const std::string& type) {
  return place + " must be a mapping, not " + type + wanted(place.substr(0, place.find('[')), false);
}

std::string nested_too_deep(const std::string& place) {
  return place + " is nested more than " + std::to_string(kMostInputDepth) + " levels deep";
}

void check_messages(Workspace& workspace, const List& messages, const std::set<std::string>& roles) {
  for (uint32_t i = 0; i < messages.size; i++)
    check_message(workspace, messages.items[i], "messages[" + std::to_string(i) + "]", roles);
}

void check_tools(Workspace& workspace, const List& tools) {
  for (uint32_t i = 0; i < tools.size; i++) {
    const Value* function = field(workspace, tools.items[i], "function");
    if (!function) function = &tools.items[i];
    const Value* const name = function->kind == Kind::Dict ? field(workspace, *function, "name") : nullptr;
    if (!name || !name->is_text())
      throw BadInput("tools[" + std::to_string(i) + "] names no function" + wanted("tools", false));
  }
}

}  // namespace tokenweir::templates
