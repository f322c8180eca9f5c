#include "input/history.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "input/call_ids.h"
#include "input/message_checks.h"

namespace tokenweir::templates {

HistoryTidier::HistoryTidier(Workspace& workspace, Origins& origins, const HistoryForm& form)
    : workspace_(workspace), origins_(origins), form_(form), fields_(workspace.symbols) {}

void HistoryTidier::tidy(List& messages, bool is_continued) {
  if (!form_.takes_orphans) check_results(messages);
  for (uint32_t i = 0; i < messages.size; i++) {
    Dict& message = *messages.items[i].dict;
    const std::string_view role = workspace_.flat(message.find(fields_.role)->text);
    if (role == "assistant") {
      const List& calls = fields_.calls_of(message);
      if (!calls.size) message.drop(workspace_, fields_.tool_calls);  // an empty list
      const bool may_lack = !is_continued || i + 1 < messages.size;   // what is continued stands in the content
      mend_calls(calls, i);
      if (may_lack && !message.find(fields_.content))
        set_no_content(message, calls.size ? form_.of_calls : form_.of_answer);
      tidy_content(message, form_.assistant, i);
      if (calls.size && may_lack && form_.joins_thinking) join_thinking(message);
      const Value* const content = message.find(fields_.content);
      if (may_lack && calls.size && form_.replaces_empty && content && !truth(*content))
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
  if (!form_.takes_late_results) gather_results(messages);
  if (form_.orders_results)
    for (uint32_t i = 0; i < messages.size; i++)
      if (fields_.calls_of(*messages.items[i].dict).size) order_results(messages, i + 1);
  if (form_.joins_system || !form_.takes_later_system) join_system(messages);
  if (form_.needs_ids) add_ids(messages);
  if (!form_.call_ids.empty()) CallIdMapper(workspace_, fields_, form_.call_ids).map(messages);
  if (form_.parts_calls) part_calls(messages, is_continued ? messages.size - 1 : messages.size);
  if (form_.single_calls) split_calls(messages, is_continued ? messages.size - 1 : messages.size);
}

bool HistoryTidier::is_result(const Value& message) const {
  return is_result_role(workspace_.flat(message.dict->find(fields_.role)->text));
}

// The id in a field of a call or a result, which is empty where the field is missing.
std::string_view HistoryTidier::id_of(const Dict& dict, const Symbol* name) const {
  const Value* const id = dict.find(name);
  return id && id->is_text() ? workspace_.flat(id->text) : std::string_view();
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
  const Value part = text_part(*content);
  *content = Value::of_list(List::of(workspace_, &part, 1));
}

Value HistoryTidier::text_part(const Value& text) const {
  Dict* const part = Dict::make(workspace_, 2);
  set_field(workspace_, *part, fields_.type, Value::of_text(workspace_.engine("text")));
  set_field(workspace_, *part, fields_.text, text);
  return Value::of_dict(part);
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
    const uint32_t origin = part.origin;
    part = text_part(Value::of_text(whole));
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

// The calls by their ids; of equal ids the first one counts.
std::unordered_map<std::string_view, uint32_t> HistoryTidier::places_of(const List& calls) const {
  std::unordered_map<std::string_view, uint32_t> places;
  for (uint32_t i = 0; i < calls.size; i++)
    if (const Value* const id = calls.items[i].dict->find(fields_.id); id && id->is_text())
      places.try_emplace(workspace_.flat(id->text), i);
  return places;
}

// Refuses results without their calls, which the template would refuse without a place, or leave out.
void HistoryTidier::check_results(const List& messages) {
  std::unordered_set<std::string_view> known;
  bool is_behind_calls = false;  // with other results between
  for (uint32_t i = 0; i < messages.size; i++) {
    const Dict& message = *messages.items[i].dict;
    const List& calls = fields_.calls_of(message);
    for (const Value& call : calls)
      if (const std::string_view id = id_of(*call.dict, fields_.id); !id.empty()) known.insert(id);
    if (!is_result(messages.items[i])) {
      is_behind_calls = calls.size != 0;
      continue;
    }
    const std::string_view called = id_of(message, fields_.tool_call_id);
    if (is_behind_calls || known.contains(called)) continue;
    Text* const shown = repr(workspace_, Value::of_text(workspace_.copy(called)));
    throw BadInput(joined("messages[", i, "].tool_call_id: no call before it has the id ", workspace_.flat(shown),
                          ", and this template writes no result without its call"));
  }
}

// Moves results behind the calls that they answer, and behind the results there, where another message stands between.
void HistoryTidier::gather_results(List& messages) {
  std::unordered_map<std::string_view, uint32_t> callers;  // by id, the last message that calls with it
  std::unordered_map<uint32_t, std::vector<Value>> late;   // by the message that calls
  std::vector<bool> is_late(messages.size);
  uint32_t open = 0;  // the last message that is no result
  for (uint32_t i = 0; i < messages.size; i++) {
    if (!is_result(messages.items[i])) {
      open = i;
      for (const Value& call : fields_.calls_of(*messages.items[i].dict))
        if (const std::string_view id = id_of(*call.dict, fields_.id); !id.empty()) callers[id] = i;
      continue;
    }
    const auto found = callers.find(id_of(*messages.items[i].dict, fields_.tool_call_id));
    if (found == callers.end() || found->second == open) continue;
    late[found->second].push_back(messages.items[i]);
    is_late[i] = true;
  }
  if (late.empty()) return;
  List* const gathered = List::make(workspace_, messages.size);
  uint32_t caller = messages.size;
  const auto add_late = [&] {
    if (const auto found = late.find(caller); found != late.end())
      for (const Value& result : found->second) gathered->add(workspace_, result);
  };
  for (uint32_t i = 0; i < messages.size; i++) {
    if (is_late[i]) continue;
    if (!is_result(messages.items[i])) {
      add_late();
      caller = i;
    }
    gathered->add(workspace_, messages.items[i]);
  }
  add_late();
  messages = *gathered;
}

// Puts the results of a message's calls, which follow it, in the order of the calls, if each belongs to one of them.
void HistoryTidier::order_results(List& messages, uint32_t first) const {
  uint32_t end = first;
  while (end < messages.size && is_result(messages.items[end])) end++;
  if (end - first < 2) return;
  const auto places = places_of(fields_.calls_of(*messages.items[first - 1].dict));
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
    *thinking = paragraphs(*thinking, *content);
    joined = true;
  }
  if (joined) set_no_content(message, form_.of_calls);
}

Value HistoryTidier::paragraphs(const Value& first, const Value& second) const {
  Rope rope(workspace_);
  rope.add(first.text);
  rope.add("\n\n");
  rope.add(second.text);
  return Value::of_text(rope.finish());
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
    *own = paragraphs(*own, content);
    return;
  }
  if (own->is_text()) {
    const Value part = text_part(*own);
    *own = Value::of_list(List::of(workspace_, &part, 1));
  }
  List& parts = *own->list;
  parts.add(workspace_, text_part(Value::of_text(workspace_.engine("\n\n"))));
  if (content.is_text()) {
    parts.add(workspace_, text_part(content));
    return;
  }
  for (const Value& part : *content.list) parts.add(workspace_, part);
}

// Gives calls beside a content a message of their own, which follows it and has no other fields.
void HistoryTidier::part_calls(List& messages, uint32_t end) {
  List* const parted = List::make(workspace_, std::max(messages.size, 1u));
  for (uint32_t i = 0; i < messages.size; i++) {
    Value message = messages.items[i];
    const Value* const content = message.dict->find(fields_.content);
    if (i >= end || !fields_.calls_of(*message.dict).size || !content || !truth(*content)) {
      parted->add(workspace_, message);
      continue;
    }
    Dict* const called = Dict::make(workspace_, 3);
    for (const Entry& entry : *message.dict)
      if (entry.symbol == fields_.role || entry.symbol == fields_.tool_calls) called->append(workspace_, entry);
    set_no_content(*called, form_.of_calls);
    message.dict->drop(workspace_, fields_.tool_calls);
    parted->add(workspace_, message);
    message.dict = called;
    parted->add(workspace_, message);
  }
  messages = *parted;
}

// Gives each call of several a message of its own, which its results follow. The first keeps the other fields. A result
// without the id of one of these calls belongs to the call of its number.
void HistoryTidier::split_calls(List& messages, uint32_t end) {
  List* const split = List::make(workspace_, std::max(messages.size, 1u));
  for (uint32_t i = 0; i < messages.size; i++) {
    Value message = messages.items[i];
    const List& calls = fields_.calls_of(*message.dict);
    split->add(workspace_, message);
    if (i >= end || calls.size < 2) continue;
    const auto places = places_of(calls);
    std::vector<std::vector<Value>> results(calls.size);
    for (uint32_t number = 0; i + 1 < messages.size && is_result(messages.items[i + 1]); number++) {
      const Value& result = messages.items[++i];
      const std::string_view id = id_of(*result.dict, fields_.tool_call_id);
      const auto found = id.empty() ? places.end() : places.find(id);
      results[found == places.end() ? std::min(number, calls.size - 1) : found->second].push_back(result);
    }
    for (uint32_t c = 0; c < calls.size; c++) {
      if (c) {
        const Value role = *message.dict->find(fields_.role);
        message.dict = Dict::make(workspace_, 3);
        set_field(workspace_, *message.dict, fields_.role, role);
        set_no_content(*message.dict, form_.of_calls);
        split->add(workspace_, message);
      }
      set_field(workspace_, *message.dict, fields_.tool_calls,
                Value::of_list(List::of(workspace_, &calls.items[c], 1)));
      for (const Value& result : results[c]) split->add(workspace_, result);
    }
  }
  messages = *split;
}

// Gives ids to calls without them, and to results without them the ids of the calls before them, in their order.
void HistoryTidier::add_ids(List& messages) {
  std::unordered_set<std::string> taken;
  for (const Value& message : messages)
    for (const Value& call : fields_.calls_of(*message.dict)) taken.emplace(id_of(*call.dict, fields_.id));
  std::vector<Value> open;  // ids of the calls before
  size_t answered = 0, number = 0;
  for (const Value& each : messages) {
    Dict& message = *each.dict;
    if (is_result(each)) {
      if (answered < open.size() && id_of(message, fields_.tool_call_id).empty())
        set_field(workspace_, message, fields_.tool_call_id, open[answered]);
      answered++;
      continue;
    }
    open.clear();
    answered = 0;
    for (const Value& given : fields_.calls_of(message)) {
      Dict& call = *given.dict;
      while (id_of(call, fields_.id).empty()) {
        const std::string id = "call_" + std::to_string(number++);
        if (taken.insert(id).second) set_field(workspace_, call, fields_.id, Value::of_text(workspace_.copy(id)));
      }
      open.push_back(*call.find(fields_.id));
    }
  }
}

}  // namespace tokenweir::templates
