#include "input/history.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "input/call_ids.h"
#include "input/message_checks.h"

namespace tokenweir::templates {

namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

HistoryTidier::HistoryTidier(Workspace& workspace, Origins& origins, const HistoryForm& form)
    : workspace_(workspace), origins_(origins), form_(form), fields_(workspace.symbols) {}

void HistoryTidier::tidy(List& messages, bool is_continued) {
  if (!form_.takes_orphans) check_results(messages);
  for (uint32_t i = 0; i < messages.size; i++) {
    Dict& message = *messages.items[i].dict;
    const std::string_view role = workspace_.flat(message.find(fields_.role)->text);
    if (role == "assistant") {
      const List* const calls = fields_.calls_of(message);
      if (!calls && message.find(fields_.tool_calls)) message.drop(workspace_, fields_.tool_calls);  // an empty list
      const bool may_lack = !is_continued || i + 1 < messages.size;  // what is continued stands in the content
      if (calls) mend_calls(*calls, i);
      if (may_lack && !message.find(fields_.content)) set_no_content(message, calls ? form_.of_calls : form_.of_answer);
      tidy_content(message, form_.assistant, i);
      if (calls && may_lack && form_.joins_thinking) join_thinking(message);
      const Value* const content = message.find(fields_.content);
      if (may_lack && calls && form_.replaces_empty && content && !truth(*content))
        set_no_content(message, form_.of_calls);
    } else if (is_result_role(role)) {
      if (!message.find(fields_.content)) set_no_content(message, NoContent::Empty);
      tidy_content(message, form_.tool, i);
    } else {
      tidy_content(message, is_one_of(role, {"system", "developer"}) ? form_.system : form_.user, i);
      if (role == "developer" && !form_.takes_developer)
        set_field(workspace_, message, fields_.role, Value::of_text(workspace_.engine("system")));
    }
  }
  if (form_.orders_results)
    for (uint32_t i = 0; i < messages.size; i++)
      if (fields_.calls_of(*messages.items[i].dict)) order_results(messages, i + 1);
  if (form_.joins_system || !form_.takes_later_system) join_system(messages);
  if (!form_.call_ids.empty()) CallIdMapper(workspace_, fields_, form_.call_ids).map(messages);
  if (form_.parts_calls) part_calls(messages, is_continued ? messages.size - 1 : messages.size);
}

// The text of a part of text; null for other parts.
Text* HistoryTidier::text_of(const Value& part) const {
  if (part.is_text()) return part.text;
  const Value* const type = part.dict->find(fields_.type);
  const std::string_view name = type && type->is_text() ? workspace_.flat(type->text) : "text";
  const bool is_text = is_one_of(name, {"text", "input_text", "output_text"});
  if (!is_text && name != "refusal") return nullptr;
  const Value* const text = part.dict->find(is_text ? fields_.text : fields_.refusal);
  return text && text->is_text() ? text->text : nullptr;
}

void HistoryTidier::tidy_content(Dict& message, const ContentForm& form, uint32_t index) {
  Value* const content = message.find(fields_.content);
  if (!content || content->is_none()) return;
  if (!content->is_text()) join(*content, form, index);
  if (!content->is_text() || form.text || !form.parts) return;
  List* const parts = List::make(workspace_, 1);
  Dict* const part = Dict::make(workspace_, 2);
  set_field(workspace_, *part, fields_.type, Value::of_text(workspace_.engine("text")));
  set_field(workspace_, *part, fields_.text, *content);
  parts->add(workspace_, Value::of_dict(part));
  *content = Value::of_list(parts);
}

// Joins neighbouring texts. A content of texts alone becomes a text.
void HistoryTidier::join(Value& content, const ContentForm& form, uint32_t index) {
  const List& given = *content.list;
  List* const joined = List::make(workspace_, std::max(given.size, 1u));
  bool has_others = false;
  Text* whole = workspace_.empty();
  for (uint32_t i = 0; i < given.size;) {
    Value part = given.items[i];
    if (!text_of(part)) {
      if (!form.parts) throw BadInput(not_a_text(workspace_, part, index, i));
      has_others = true;
      joined->add(workspace_, part);
      i++;
      continue;
    }
    Rope rope(workspace_);
    for (Text* text; i < given.size && (text = text_of(given.items[i])); i++) rope.add(text);
    whole = rope.finish();
    if (!whole->size) continue;
    Dict* const made = Dict::make(workspace_, 2);
    set_field(workspace_, *made, fields_.type, Value::of_text(workspace_.engine("text")));
    set_field(workspace_, *made, fields_.text, Value::of_text(whole));
    const uint32_t origin = part.origin;
    part = Value::of_dict(made);
    part.origin = origin;
    joined->add(workspace_, part);
  }
  const uint32_t origin = content.origin;
  content = has_others ? Value::of_list(joined) : Value::of_text(whole);
  content.origin = origin;
}

void HistoryTidier::set_no_content(Dict& message, NoContent form) {
  if (form == NoContent::Absent) {
    message.drop(workspace_, fields_.content);
  } else {
    const Value none = form == NoContent::None ? Value::none() : Value::of_text(workspace_.empty());
    set_field(workspace_, message, fields_.content, none);
  }
}

void HistoryTidier::mend_calls(const List& calls, uint32_t index) {
  for (uint32_t i = 0; i < calls.size; i++) {
    Dict* const function = fields_.function_of(calls.items[i]);
    if (!function || !function->find(fields_.name)) continue;  // a form of the template's own
    if (!mend_arguments(workspace_, origins_, fields_, form_.arguments, *function)) continue;
    const bool is_call = function == calls.items[i].dict;
    mended_.push_back("messages[" + std::to_string(index) + "].tool_calls[" + std::to_string(i) +
                      (is_call ? "].arguments" : "].function.arguments"));
  }
}

// Refuses results without their calls, which the template would refuse without a place, or leave out.
void HistoryTidier::check_results(const List& messages) {
  std::unordered_set<std::string_view> known;
  bool is_behind_calls = false;  // with other results between
  for (uint32_t i = 0; i < messages.size; i++) {
    const Dict& message = *messages.items[i].dict;
    const List* const calls = fields_.calls_of(message);
    for (uint32_t c = 0; calls && c < calls->size; c++)
      if (const Value* const id = calls->items[c].dict->find(fields_.id); id && id->is_text())
        known.insert(workspace_.flat(id->text));
    if (!is_result_role(workspace_.flat(message.find(fields_.role)->text))) {
      is_behind_calls = calls != nullptr;
      continue;
    }
    const Value* const id = message.find(fields_.tool_call_id);
    const std::string_view called = id && id->is_text() ? workspace_.flat(id->text) : "";
    if (is_behind_calls || known.contains(called)) continue;
    Rope shown(workspace_);
    add_repr(workspace_, Value::of_text(workspace_.copy(called)), shown);
    throw BadInput("messages[" + std::to_string(i) + "].tool_call_id: no call before it has the id " +
                   std::string(workspace_.flat(shown.finish())) +
                   ", and this template writes no result without its call");
  }
}

// Puts the results of a message's calls, which follow it, in the order of the calls, if each belongs to one of them.
void HistoryTidier::order_results(List& messages, uint32_t first) const {
  uint32_t end = first;
  while (end < messages.size && is_result_role(workspace_.flat(messages.items[end].dict->find(fields_.role)->text)))
    end++;
  if (end - first < 2) return;
  const List& calls = *fields_.calls_of(*messages.items[first - 1].dict);
  std::unordered_map<std::string_view, uint32_t> places;
  for (uint32_t i = 0; i < calls.size; i++)
    if (const Value* const id = calls.items[i].dict->find(fields_.id); id && id->is_text())
      places.try_emplace(workspace_.flat(id->text), i);
  std::vector<std::pair<uint32_t, Value>> results;
  for (uint32_t i = first; i < end; i++) {
    const Value* const id = messages.items[i].dict->find(fields_.tool_call_id);
    const auto found = id && id->is_text() ? places.find(workspace_.flat(id->text)) : places.end();
    if (found == places.end()) return;
    results.emplace_back(found->second, messages.items[i]);
  }
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (uint32_t i = first; i < end; i++) messages.items[i] = results[i - first].second;
}

// Adds a content beside calls to the thinking, with an empty line between them.
void HistoryTidier::join_thinking(Dict& message) {
  const Value* const content = message.find(fields_.content);
  if (!content || !content->is_text() || !content->text->size) return;
  bool joined = false;
  for (Symbol* const name : fields_.reasoning) {
    Value* const thinking = message.find(name);
    if (!thinking || !thinking->is_text() || !thinking->text->size) continue;
    Rope rope(workspace_);
    rope.add(thinking->text);
    rope.add("\n\n");
    rope.add(content->text);
    *thinking = Value::of_text(rope.finish());
    joined = true;
  }
  if (joined) set_no_content(message, form_.of_calls);
}

// Joins the system's messages at the beginning to one, and the texts of later ones to the user's turns beside them, as far as the
// template does not write them at their places.
void HistoryTidier::join_system(List& messages) {
  List* const kept = List::make(workspace_, std::max(messages.size, 1u));
  Dict* waiting = nullptr;  // a turn of the user with the contents of later ones, behind an answer or a result
  bool has_begun = false;
  for (uint32_t i = 0; i < messages.size; i++) {
    Dict& message = *messages.items[i].dict;
    const std::string_view role = workspace_.flat(message.find(fields_.role)->text);
    const bool is_system = is_one_of(role, {"system", "developer"});
    const Value* const content = message.find(fields_.content);
    Dict* const last = kept->size ? kept->items[kept->size - 1].dict : nullptr;
    if (is_system && last && (has_begun ? !form_.takes_later_system : form_.joins_system)) {
      if (!content || !truth(*content)) continue;
      const bool follows_user = workspace_.flat(last->find(fields_.role)->text) == "user";
      if (has_begun && !follows_user && !waiting) {
        waiting = Dict::make(workspace_, 2);
        set_field(workspace_, *waiting, fields_.role, Value::of_text(workspace_.engine("user")));
      }
      add_paragraph(has_begun && !follows_user ? *waiting : *last, *content);
      continue;
    }
    has_begun |= !is_system;
    if (waiting && role == "user") {
      if (content) add_paragraph(*waiting, *content);
      set_field(workspace_, message, fields_.content, *waiting->find(fields_.content));
      waiting = nullptr;
    } else if (waiting && role == "assistant") {
      kept->add(workspace_, Value::of_dict(waiting));
      waiting = nullptr;
    }
    kept->add(workspace_, messages.items[i]);
  }
  if (waiting) kept->add(workspace_, Value::of_dict(waiting));
  messages = *kept;
}

// Adds a content to that of a message, as its last paragraph.
void HistoryTidier::add_paragraph(Dict& message, const Value& content) {
  Value* const own = message.find(fields_.content);
  if (!truth(content)) return;
  if (!own || !truth(*own)) return set_field(workspace_, message, fields_.content, content);
  if (own->is_text() && content.is_text()) {
    Rope rope(workspace_);
    rope.add(own->text);
    rope.add("\n\n");
    rope.add(content.text);
    *own = Value::of_text(rope.finish());
    return;
  }
  const auto part_of = [&](const Value& text) {
    Dict* const part = Dict::make(workspace_, 2);
    set_field(workspace_, *part, fields_.type, Value::of_text(workspace_.engine("text")));
    set_field(workspace_, *part, fields_.text, text);
    return Value::of_dict(part);
  };
  if (own->is_text()) {
    List* const parts = List::make(workspace_, 4);
    parts->add(workspace_, part_of(*own));
    *own = Value::of_list(parts);
  }
  List& parts = *own->list;
  parts.add(workspace_, part_of(Value::of_text(workspace_.engine("\n\n"))));
  if (content.is_text()) {
    parts.add(workspace_, part_of(content));
    return;
  }
  for (uint32_t i = 0; i < content.list->size; i++) parts.add(workspace_, content.list->items[i]);
}

// Gives calls beside a content a message of their own, which follows it and has no other fields.
void HistoryTidier::part_calls(List& messages, uint32_t end) {
  List* const parted = List::make(workspace_, std::max(messages.size, 1u));
  for (uint32_t i = 0; i < messages.size; i++) {
    Value message = messages.items[i];
    const Value* const content = message.dict->find(fields_.content);
    if (i >= end || !fields_.calls_of(*message.dict) || !content || !truth(*content)) {
      parted->add(workspace_, message);
      continue;
    }
    Dict* const called = Dict::make(workspace_, 3);
    for (uint32_t f = 0; f < message.dict->size; f++)
      if (const Entry& entry = message.dict->entries[f];
          entry.symbol == fields_.role || entry.symbol == fields_.tool_calls)
        called->append(workspace_, entry);
    set_no_content(*called, form_.of_calls);
    message.dict->drop(workspace_, fields_.tool_calls);
    parted->add(workspace_, message);
    message.dict = called;
    parted->add(workspace_, message);
  }
  messages = *parted;
}

}  // namespace tokenweir::templates
