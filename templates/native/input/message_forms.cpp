#include "input/message_forms.h"

#include <algorithm>
#include <unordered_map>

#include "input/message_checks.h"
#include "values/json.h"

namespace tokenweir::templates {

namespace {

// The names of reasoning, of which the first that is set counts.
constexpr std::string_view kReasoning[] = {"reasoning_content", "thinking", "reasoning"};

// The digits at the end of a text.
std::string_view last_number(std::string_view text) {
  const size_t last = text.find_last_not_of("0123456789");
  return text.substr(last == text.npos ? 0 : last + 1);
}

std::string replaced(std::string form, std::string_view place, std::string_view with) {
  const size_t at = form.find(place);
  return at == form.npos ? form : form.replace(at, place.size(), with);
}

bool is_list(const Value& value) { return value.kind == Kind::List || value.kind == Kind::Tuple; }

}  // namespace

MessageShaper::MessageShaper(Workspace& workspace, Origins& origins, const MessageForm& form)
    : workspace_(workspace),
      origins_(origins),
      form_(form),
      role_(workspace.symbols.intern("role")),
      content_(workspace.symbols.intern("content")),
      tool_calls_(workspace.symbols.intern("tool_calls")),
      function_(workspace.symbols.intern("function")),
      name_(workspace.symbols.intern("name")),
      arguments_(workspace.symbols.intern("arguments")),
      id_(workspace.symbols.intern("id")),
      tool_call_id_(workspace.symbols.intern("tool_call_id")),
      text_(workspace.symbols.intern("text")),
      type_(workspace.symbols.intern("type")),
      reasoning_{workspace.symbols.intern(kReasoning[0]), workspace.symbols.intern(kReasoning[1]),
                 workspace.symbols.intern(kReasoning[2])} {}

void MessageShaper::shape(List& messages) {
  check_messages(workspace_, messages, form_.roles);
  for (uint32_t i = 0; i < messages.size; i++) {
    Dict*& message = messages.items[i].dict;
    message->drop_none(workspace_);
    alias_reasoning(message);
    if (!form_.takes_parts) flatten(*message, i);
    if (form_.arguments == ArgumentForm::Either) continue;
    if (const Value* const calls = message->find(tool_calls_))
      for (uint32_t c = 0; c < calls->list->size; c++)
        if (Dict* const function = function_of(calls->list->items[c])) convert_arguments(*function);
  }
}

const Symbol* MessageShaper::role(const Value& message) const {
  return symbol_of(workspace_, message.dict->find(role_)->text);
}

void MessageShaper::set(Dict& dict, Symbol* name, const Value& value) {
  dict.set(workspace_, name, Value::of_text(workspace_.engine(name->text)), value);
}

// gpt-oss reads `thinking`, most others `reasoning_content`.
void MessageShaper::alias_reasoning(Dict*& message) {
  const Value* reasoning = nullptr;
  for (Symbol* const name : reasoning_)
    if (!reasoning) reasoning = message->find(name);
  if (!reasoning) return;
  const Value value = *reasoning;
  Dict* const aliased = Dict::make(workspace_, message->size + 2);
  const Value* const thinking = message->find(reasoning_[1]);
  set(*aliased, reasoning_[1], thinking ? *thinking : value);
  for (uint32_t i = 0; i < message->size; i++)
    if (const Entry& entry = message->entries[i]; entry.symbol != reasoning_[1]) aliased->append(workspace_, entry);
  set(*aliased, reasoning_[0], value);
  message = aliased;
}

// Joins text parts with line feeds, as vLLM does for templates that want strings.
void MessageShaper::flatten(Dict& message, uint32_t index) {
  Value* const content = message.find(content_);
  if (!content || !is_list(*content)) return;
  Rope rope(workspace_);
  for (uint32_t i = 0; i < content->list->size; i++) {
    const Value& part = content->list->items[i];
    const Value* const text = part.is_text() ? &part : part.dict->find(text_);
    if (!text || !text->is_text()) {
      const Value* const type = part.dict->find(type_);
      Rope shown(workspace_);
      add_repr(workspace_, type ? *type : Value::none(), shown);
      throw BadInput("messages[" + std::to_string(index) + "].content[" + std::to_string(i) + "] is of type " +
                     std::string(workspace_.flat(shown.finish())) + ", but this template takes only text");
    }
    if (i) rope.add("\n");
    rope.add(text->text);
  }
  *content = Value::of_text(rope.finish());
}

// OpenAI's clients send JSON text; most templates take the object and write JSON themselves, some fail with it.
void MessageShaper::convert_arguments(Dict& function) {
  Value* const arguments = function.find(arguments_);
  if (!arguments) return;
  if (form_.arguments == ArgumentForm::Object && arguments->is_text()) {
    const Value read =
        read_object_text(workspace_, origins_, workspace_.flat(arguments->text), arguments->text->origin);
    if (!read.is_missing()) *arguments = read;
  } else if (form_.arguments == ArgumentForm::Text && arguments->kind == Kind::Dict) {
    const JsonStyle style{.between_items = workspace_.engine(", "), .after_key = workspace_.engine(": ")};
    *arguments = Value::of_text(to_json(workspace_, *arguments, style));
  }
}

// The function of a call, which may be the call itself.
Dict* MessageShaper::function_of(const Value& call) const {
  const Value* const function = call.dict->find(function_);
  if (!function) return call.dict;
  return function->kind == Kind::Dict ? function->dict : nullptr;
}

void MessageShaper::mend(List& messages, const CallMending& mending) {
  if (!mending.ids.empty()) {
    uint64_t number = 0;
    std::unordered_map<std::string, Text*> ids;
    for (uint32_t i = 0; i < messages.size; i++) name_calls(*messages.items[i].dict, mending.ids, number, ids);
  }
  if (!mending.part) return;
  List* const parted = List::make(workspace_, messages.size);
  for (uint32_t i = 0; i < messages.size; i++) {
    Value message = messages.items[i];
    const Value* const calls = message.dict->find(tool_calls_);
    if (calls && calls->list->size) {
      const Value* const content = message.dict->find(content_);
      const bool speaks = content && truth(*content);
      Dict* const called = without_content(*message.dict, !speaks);
      if (speaks) {
        message.dict->drop(workspace_, tool_calls_);
        parted->add(workspace_, message);
      }
      message.dict = called;
    }
    parted->add(workspace_, message);
  }
  messages = *parted;
}

// A message whose content is None: all of it, or its calls alone.
Dict* MessageShaper::without_content(const Dict& message, bool all_fields) {
  Dict* const made = Dict::make(workspace_, message.size + 1);
  for (uint32_t i = 0; i < message.size; i++)
    if (const Entry& entry = message.entries[i]; all_fields || entry.symbol == role_ || entry.symbol == tool_calls_)
      made->append(workspace_, entry);
  set(*made, content_, Value::none());
  return made;
}

// Gives calls, and the results that name them, ids that tell the function.
void MessageShaper::name_calls(Dict& message, const std::string& form, uint64_t& number,
                               std::unordered_map<std::string, Text*>& ids) {
  const Value* const calls = message.find(tool_calls_);
  for (uint32_t i = 0; calls && i < calls->list->size; i++) {
    const Value& call = calls->list->items[i];
    Dict* const function = function_of(call);
    if (!function) continue;
    const Value *const given = call.dict->find(id_), *const name = function->find(name_);
    if (name && name->is_text()) {
      const std::string id = given && given->is_text() ? std::string(workspace_.flat(given->text)) : "";
      const std::string_view last = last_number(id);
      const std::string named = replaced(form, "{name}", workspace_.flat(name->text));
      if (last.empty() || id != replaced(named, "{number}", last))
        set(*call.dict, id_, Value::of_text(call_id(form, name->text, std::to_string(number))));
      if (given && given->is_text()) ids[id] = call.dict->find(id_)->text;
    }
    number++;
  }
  Value* const answered = message.find(tool_call_id_);
  if (!answered || !answered->is_text()) return;
  if (const auto found = ids.find(std::string(workspace_.flat(answered->text))); found != ids.end())
    *answered = Value::of_text(found->second);
}

Text* MessageShaper::call_id(const std::string& form, Text* name, std::string_view number) const {
  const size_t before = form.find("{name}"), between = before + 6, behind = form.find("{number}");
  const auto copied = [&](std::string_view part) { return workspace_.copy(part); };
  Rope rope(workspace_);
  rope.add(copied(std::string_view(form).substr(0, before)));
  rope.add(name);
  rope.add(copied(std::string_view(form).substr(between, behind - between)));
  rope.add(copied(number));
  rope.add(copied(std::string_view(form).substr(behind + 8)));
  return rope.finish();
}

Text* MessageShaper::mark_end(List& messages, const Continuation& continuation) {
  const auto refuse = [](const std::string& why) { throw BadInput("continue_final_message: " + why); };
  Text* const quoted = workspace_.copy(continuation.field);
  Rope rope(workspace_);
  add_repr(workspace_, Value::of_text(quoted), rope);
  const std::string shown(workspace_.flat(rope.finish()));
  Symbol* const name = workspace_.symbols.intern(continuation.field);
  Dict* const last = messages.size ? messages.items[messages.size - 1].dict : nullptr;
  const Value* const value = last ? last->find(name) : nullptr;
  if (!value || value->is_none()) refuse("the last message has no " + shown);
  // Reasoning stands under several names, of which the template reads one.
  std::vector<Symbol*> fields;
  const bool is_reasoning = std::find(std::begin(reasoning_), std::end(reasoning_), name) != std::end(reasoning_);
  for (Symbol* const each : reasoning_)
    if (const Value* const other = is_reasoning ? last->find(each) : nullptr;
        other && equal(workspace_, *other, *value))
      fields.push_back(each);
  if (!is_reasoning) fields.push_back(name);
  if (std::none_of(fields.begin(), fields.end(),
                   [&](const Symbol* each) { return continuation.source.find(each->text) != std::string_view::npos; }))
    refuse("the template does not read " + shown);
  const auto marked = [&](Text* text) {
    return Value::of_text(workspace_.concat(text, workspace_.copy(continuation.tag)));
  };
  if (value->is_text()) {
    Text* const text = value->text;
    for (Symbol* const each : fields) *last->find(each) = marked(text);
    return text;
  }
  if (is_list(*value))
    for (uint32_t i = value->list->size; i-- > 0;) {
      const Value& part = value->list->items[i];
      Value* const text = part.kind == Kind::Dict ? part.dict->find(text_) : nullptr;
      if (!text || !text->is_text()) continue;
      Text* const found = text->text;
      *text = marked(found);
      return found;
    }
  refuse("the " + shown + " of the last message has no text");
  return nullptr;
}

}  // namespace tokenweir::templates
