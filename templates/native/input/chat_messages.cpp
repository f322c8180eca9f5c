#include "input/chat_messages.h"

#include <algorithm>
#include <unordered_map>

#include "input/message_fields.h"

namespace tokenweir::templates {

namespace {

constexpr size_t kLongestName = 256;  // characters of a function's name

// Thrown for a message that is not plain.
struct NotPlain {};

class ChatShaper {
 public:
  explicit ChatShaper(Messages& messages) : workspace_(messages.workspace()) {}

  const List* shape(const List& given) {
    list_ = List::make(workspace_, given.size);
    for (const Value& message : given) add(*message.dict, message.origin);
    return list_;
  }

 private:
  // A field that is set and not null.
  const Value* field(const Dict& dict, std::string_view name) const {
    const Value* const value = any(dict, name);
    return value && !value->is_none() ? value : nullptr;
  }

  // A field that is set, perhaps to null.
  const Value* any(const Dict& dict, std::string_view name) const {
    const Symbol* const symbol = workspace_.symbols.find(name);
    return symbol ? dict.find(symbol) : nullptr;
  }

  // A field that is a text if it is set; null: it is not.
  Text* text_field(const Dict& dict, std::string_view name) const {
    const Value* const value = field(dict, name);
    if (!value) return nullptr;
    if (!value->is_text()) throw NotPlain{};
    return value->text;
  }

  Text* required_text(const Dict& dict, std::string_view name) const {
    Text* const text = text_field(dict, name);
    if (!text) throw NotPlain{};
    return text;
  }

  void set(Dict& dict, std::string_view name, const Value& value) {
    Symbol* const symbol = workspace_.symbols.intern(name);
    dict.set(workspace_, symbol, Value::of_text(workspace_.leaf(symbol->text, kFromEngine, 0, 1)), value);
  }

  void add(const Dict& message, uint32_t origin) {
    for (const Entry& entry : message)
      if (!entry.value.is_none() &&
          !is_one_of(entry.symbol->text, {"role", "content", "name", "tool_calls", "tool_call_id", "reasoning_content",
                                          "reasoning", "refusal", "annotations"}))
        throw NotPlain{};
    text_field(message, "name");
    if (const Value* const annotations = field(message, "annotations"); annotations && annotations->kind != Kind::List)
      throw NotPlain{};
    Text* const role = required_text(message, "role");
    const std::string name(workspace_.flat(role));
    if (!is_one_of(name, {"system", "developer", "user", "assistant", "tool"})) throw NotPlain{};
    Text* const reasoning_content = text_field(message, "reasoning_content");
    Text* const reasoning = text_field(message, "reasoning");
    Text* const call_id = text_field(message, "tool_call_id");
    Text* content = content_of(message);
    if (Text* const refusal = text_field(message, "refusal"); refusal && name == "assistant" && !content->size)
      content = refusal;
    const Value* const given = field(message, "tool_calls");
    if (given && given->kind != Kind::List) throw NotPlain{};
    static constexpr List kNone{};
    const List& calls = given ? *given->list : kNone;
    for (const Value& call : calls) check_call(call);
    if (name == "tool") return answer(role, content, call_id, text_field(message, "name"), origin);
    if (name != "assistant") {
      Text* const shown = name == "developer" ? workspace_.leaf("system", role->origin, 0, 1, true) : role;
      open(shown, content, nullptr, origin);
      if (calls.size) throw NotPlain{};
      return;
    }
    Text* thinking = reasoning_content && reasoning_content->size ? reasoning_content
                     : reasoning && reasoning->size               ? reasoning
                                                                  : nullptr;
    if (!calls.size || content->size) {
      open(role, content, thinking, origin);
      thinking = nullptr;
    }
    for (const Value& call : calls) {
      if (thinking || !speaks_) open(role, workspace_.empty(), thinking, origin);
      thinking = nullptr;
      add_call(*call.dict);
    }
  }

  Text* content_of(const Dict& message) {
    const Value* const content = field(message, "content");
    if (!content) return workspace_.empty();
    if (content->is_text()) return content->text;
    if (content->kind != Kind::List) throw NotPlain{};
    Rope rope(workspace_);
    for (const Value& part : *content->list) {
      if (part.kind != Kind::Dict) throw NotPlain{};
      bool refuses = false;
      const Text *text = nullptr, *refusal = nullptr;
      bool has_type = false;
      for (const Entry& entry : *part.dict) {
        if (!entry.value.is_text()) throw NotPlain{};
        const std::string_view value = workspace_.flat(entry.value.text);
        if (entry.symbol->text == "type") {
          if (!is_one_of(value, {"text", "input_text", "refusal"})) throw NotPlain{};
          has_type = true;
          refuses = value == "refusal";
        } else if (entry.symbol->text == "text") {
          text = entry.value.text;
        } else if (entry.symbol->text == "refusal") {
          refusal = entry.value.text;
        } else {
          throw NotPlain{};
        }
      }
      if (!has_type) throw NotPlain{};
      if (const Text* const written = refuses ? refusal : text) rope.add(const_cast<Text*>(written));
    }
    return whole(rope.finish());
  }

  // Renders share what is here, so nothing may be left to be found out later.
  Text* whole(Text* text) {
    workspace_.flat(text);
    workspace_.ascii(text);
    return text;
  }

  void check_call(const Value& call) const {
    if (call.kind != Kind::Dict) throw NotPlain{};
    required_text(*call.dict, "id");
    const Value* const function = field(*call.dict, "function");
    if (!function || function->kind != Kind::Dict) throw NotPlain{};
    if (workspace_.length(required_text(*function->dict, "name")) > kLongestName) throw NotPlain{};
    if (const Value* const arguments = any(*function->dict, "arguments"); arguments && !arguments->is_text())
      throw NotPlain{};
    if (const Value* const type = any(*call.dict, "type");
        type && !(type->is_text() && workspace_.flat(type->text) == "function"))
      throw NotPlain{};
    if (const Value* const index = field(*call.dict, "index"); index && index->kind != Kind::Int) throw NotPlain{};
  }

  Dict& open(Text* role, Text* content, Text* thinking, uint32_t origin) {
    Dict* const made = Dict::make(workspace_, 4);
    set(*made, "role", Value::of_text(role));
    set(*made, "content", Value::of_text(content));
    if (thinking) set(*made, "reasoning_content", Value::of_text(thinking));
    Value message = Value::of_dict(made);
    message.origin = origin;
    list_->add(workspace_, message);
    speaks_ = workspace_.flat(role) == "assistant";
    return *made;
  }

  void add_call(const Dict& call) {
    const Dict& function = *field(call, "function")->dict;
    Text *const id = text_field(call, "id"), *const name = text_field(function, "name");
    Text* const arguments = text_field(function, "arguments");
    Dict* const called = Dict::make(workspace_, 2);
    set(*called, "name", Value::of_text(name));
    set(*called, "arguments",
        Value::of_text(arguments ? arguments : workspace_.leaf("{}", field(call, "function")->origin, 0, 1, true)));
    Dict* const made = Dict::make(workspace_, 3);
    set(*made, "id", Value::of_text(id));
    set(*made, "type", Value::of_text(workspace_.engine("function")));
    set(*made, "function", Value::of_dict(called));
    Dict& last = *list_->items[list_->size - 1].dict;
    const Symbol* const calls = workspace_.symbols.find("tool_calls");
    if (!last.find(calls)) set(last, "tool_calls", Value::of_list(List::make(workspace_, 1)));
    last.find(calls)->list->add(workspace_, Value::of_dict(made));
    names_.try_emplace(std::string(workspace_.flat(id)), name);
  }

  // A result whose call is not known has the name that is given, or none.
  void answer(Text* role, Text* content, Text* call_id, Text* name, uint32_t origin) {
    const auto called = names_.find(call_id ? std::string(workspace_.flat(call_id)) : "");
    if (called != names_.end()) name = called->second;
    Dict& made = open(role, content, nullptr, origin);
    if (call_id && call_id->size) set(made, "tool_call_id", Value::of_text(call_id));
    if (name && name->size) set(made, "name", Value::of_text(name));
  }

  Workspace& workspace_;
  List* list_ = nullptr;
  bool speaks_ = false;                           // the last message is an assistant's
  std::unordered_map<std::string, Text*> names_;  // of called functions, by the id of the call
};

}  // namespace

bool shape_chat_messages(Messages& messages) {
  try {
    messages.set(ChatShaper(messages).shape(messages.list()));
    return true;
  } catch (const NotPlain&) {
    return false;
  }
}

uint64_t count_chat_items(const Messages& messages) {
  uint64_t count = messages.size();
  for (const Value& message : messages.list())
    for (const Entry& entry : *message.dict)
      if (entry.value.kind == Kind::List && is_one_of(entry.symbol->text, {"content", "tool_calls"}))
        count += entry.value.list->size;
  return count;
}

}  // namespace tokenweir::templates
