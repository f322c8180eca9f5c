#include "input/message_forms.h"

#include <algorithm>

#include "input/message_checks.h"
#include "input/message_fields.h"

namespace tokenweir::templates {

MessageShaper::MessageShaper(Workspace& workspace, Origins& origins, const MessageForm& form)
    : workspace_(workspace), origins_(origins), form_(form), fields_(workspace.symbols) {}

void MessageShaper::shape(List& messages, bool tidied) {
  check_messages(workspace_, messages, form_.roles, !tidied);
  for (uint32_t i = 0; i < messages.size; i++) {
    Dict*& message = messages.items[i].dict;
    message->drop_none(workspace_);
    alias_reasoning(message);
    if (tidied) continue;
    if (!form_.takes_parts) flatten(*message, i);
    if (form_.arguments == ArgumentForm::Either) continue;
    for (const Value& call : fields_.calls_of(*message))
      if (Dict* const function = fields_.function_of(call))
        convert_arguments(workspace_, origins_, fields_, form_.arguments, *function);
  }
}

const Symbol* MessageShaper::role(const Value& message) const {
  return symbol_of(workspace_, message.dict->find(fields_.role)->text);
}

// gpt-oss reads `thinking`, most others `reasoning_content`.
void MessageShaper::alias_reasoning(Dict*& message) {
  const Value* reasoning = nullptr;
  for (Symbol* const name : fields_.reasoning)
    if (!reasoning) reasoning = message->find(name);
  if (!reasoning) return;
  const Value value = *reasoning;
  Dict* const aliased = Dict::make(workspace_, message->size + 2);
  const Value* const thinking = message->find(fields_.reasoning[1]);
  set_field(workspace_, *aliased, fields_.reasoning[1], thinking ? *thinking : value);
  for (const Entry& entry : *message)
    if (entry.symbol != fields_.reasoning[1]) aliased->append(workspace_, entry);
  set_field(workspace_, *aliased, fields_.reasoning[0], value);
  message = aliased;
}

// Joins text parts with line feeds, as vLLM does for templates that want strings.
void MessageShaper::flatten(Dict& message, uint32_t index) {
  Value* const content = message.find(fields_.content);
  if (!content || !is_list(*content)) return;
  Rope rope(workspace_);
  for (uint32_t i = 0; i < content->list->size; i++) {
    const Value& part = content->list->items[i];
    const Value* const text = part.is_text() ? &part : part.dict->find(fields_.text);
    if (!text || !text->is_text()) throw BadInput(not_a_text(workspace_, part, index, i));
    if (i) rope.add("\n");
    rope.add(text->text);
  }
  *content = Value::of_text(rope.finish());
}

Text* MessageShaper::mark_end(List& messages, const Continuation& continuation) {
  const auto refuse = [](const std::string& why) { throw BadInput(joined("continue_final_message: ", why)); };
  const std::string shown(workspace_.flat(repr(workspace_, Value::of_text(workspace_.copy(continuation.field)))));
  Symbol* const name = workspace_.symbols.intern(continuation.field);
  Dict* const last = messages.size ? messages.items[messages.size - 1].dict : nullptr;
  const Value* const value = last ? last->find(name) : nullptr;
  if (!value || value->is_none()) refuse("the last message has no " + shown);
  // Reasoning stands under several names, of which the template reads one.
  std::vector<Symbol*> fields;
  const bool is_reasoning =
      std::find(std::begin(fields_.reasoning), std::end(fields_.reasoning), name) != std::end(fields_.reasoning);
  for (Symbol* const each : fields_.reasoning)
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
      Value* const text = part.kind == Kind::Dict ? part.dict->find(fields_.text) : nullptr;
      if (!text || !text->is_text()) continue;
      Text* const found = text->text;
      *text = marked(found);
      return found;
    }
  refuse("the " + shown + " of the last message has no text");
  return nullptr;
}

}  // namespace tokenweir::templates
