#include "input/message_checks.h"

#include "input/message_fields.h"

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
  return value ? std::string(workspace.flat(repr(workspace, *value))) : "None";
}

// A field of an object; null if it has none of the name, for which there may be no symbol.
const Value* field(const Value& value, const Symbol* name) { return name ? value.dict->find(name) : nullptr; }

class MessageCheck {
 public:
  MessageCheck(Workspace& workspace, const Roles& roles, bool needs_content)
      : workspace_(workspace),
        roles_(roles),
        needs_content_(needs_content),
        role_(workspace.symbols.find("role")),
        content_(workspace.symbols.find("content")),
        tool_calls_(workspace.symbols.find("tool_calls")) {}

  void check(const Value& message, uint32_t index) const {
    const auto place = [&] { return "messages[" + std::to_string(index) + "]"; };
    const Value* const role = field(message, role_);
    if (!role || !role->is_text() || roles_.find(workspace_.flat(role->text)) == roles_.end()) {
      std::string known;
      for (const std::string& each : roles_) known += (known.empty() ? "" : ", ") + each;
      throw BadInput(joined(place(), ": role ", shown(workspace_, role), " is not one of ", known));
    }
    const Value* const content = field(message, content_);
    if (!content || content->is_none()) {
      // An assistant's may be all calls or thinking.
      const std::string_view name = workspace_.flat(role->text);
      const bool may_lack =
          name == "assistant" ? message.dict->size > 1 || !needs_content_ : is_result_role(name) && !needs_content_;
      if (!may_lack)
        throw BadInput(joined(place(), " has no content: write {\"role\": \"", name, "\", \"content\": \"...\"}"));
    } else if (is_list(*content)) {
      for (uint32_t i = 0; i < content->list->size; i++)
        if (const Value& part = content->list->items[i]; part.kind != Kind::Dict && !part.is_text())
          throw BadInput(joined(place(), ".content[", i, "] must be a part, not ", type_name(part)));
    } else if (!content->is_text()) {
      throw BadInput(joined(place(), ".content must be a string or a list of parts, not ", type_name(*content)));
    }
    const Value* const calls = field(message, tool_calls_);
    if (!calls || calls->is_none()) return;
    const auto is_call = [](const Value& call) { return call.kind == Kind::Dict; };
    if (!is_list(*calls) || !std::all_of(calls->list->begin(), calls->list->end(), is_call))
      throw BadInput(joined(place(), ".tool_calls must be a list of calls: write [", kCall, "]"));
  }

 private:
  Workspace& workspace_;
  const Roles& roles_;
  const bool needs_content_;
  const Symbol *const role_, *const content_, *const tool_calls_;
};

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

std::string not_a_text(Workspace& workspace, const Value& part, uint32_t message, uint32_t index) {
  const Symbol* const type = workspace.symbols.find("type");
  return "messages[" + std::to_string(message) + "].content[" + std::to_string(index) + "] is of type " +
         shown(workspace, field(part, type)) + ", but this template takes only text";
}

bool is_result_role(std::string_view role) { return role == "tool" || role == "function" || role == "ipython"; }

void check_messages(Workspace& workspace, const List& messages, const Roles& roles, bool needs_content) {
  const MessageCheck check(workspace, roles, needs_content);
  for (uint32_t i = 0; i < messages.size; i++) check.check(messages.items[i], i);
}

void check_tools(Workspace& workspace, const List& tools) {
  const Symbol *const function_name = workspace.symbols.find("function"), *const name_name =
                                                                              workspace.symbols.find("name");
  for (uint32_t i = 0; i < tools.size; i++) {
    const Value* function = field(tools.items[i], function_name);
    if (!function) function = &tools.items[i];
    const Value* const name = function->kind == Kind::Dict ? field(*function, name_name) : nullptr;
    if (!name || !name->is_text()) throw BadInput(joined("tools[", i, "] names no function", wanted("tools", false)));
  }
}

}  // namespace tokenweir::templates
