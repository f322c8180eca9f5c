#include "input/call_ids.h"

#include <algorithm>

#include "text/characters.h"

namespace tokenweir::templates {

namespace {

constexpr std::string_view kName = "{name}", kNumber = "{number}", kLetters = "{letters}";
constexpr size_t kLettered = 9;  // characters of Mistral's ids
constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

// The part of a form between two of its places.
std::string part(const std::string& form, std::string_view after, std::string_view before) {
  const size_t at = after.empty() ? 0 : form.find(after);
  if (at == form.npos) return "";
  const size_t start = at + after.size();
  const size_t end = before.empty() ? form.npos : form.find(before, start);
  return form.substr(start, end == form.npos ? form.npos : end - start);
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string key_of(std::string_view name, std::string_view id) {
  return std::to_string(name.size()) + ':' + std::string(name) + std::string(id);
}

const Value* text_field(const Dict& dict, const Symbol* name) {
  const Value* const value = dict.find(name);
  return value && value->is_text() ? value : nullptr;
}

}  // namespace

CallIdMapper::CallIdMapper(Workspace& workspace, const MessageFields& fields, const std::string& form)
    : workspace_(workspace),
      fields_(fields),
      before_(part(form, "", kName)),
      between_(part(form, kName, kNumber)),
      behind_(part(form, kNumber, "")),
      lettered_(form == kLetters) {}

void CallIdMapper::map(List& messages) {
  for (const Value& message : messages) reserve(*message.dict);
  for (const Value& message : messages) {
    map_calls(*message.dict);
    map_result(*message.dict);
  }
}

void CallIdMapper::reserve(const Dict& message) {
  for (const Value& call : fields_.calls_of(message)) {
    const Dict* const function = fields_.function_of(call);
    const Value* const id = text_field(*call.dict, fields_.id);
    const Value* const name = function ? text_field(*function, fields_.name) : nullptr;
    if (!id || !name) continue;
    const std::string_view given = workspace_.flat(id->text);
    if (has_form(given, workspace_.flat(name->text))) taken_.emplace(given);
  }
  if (const Value* const id = lettered_ ? text_field(message, fields_.tool_call_id) : nullptr)
    if (const std::string_view given = workspace_.flat(id->text); has_form(given, "")) taken_.emplace(given);
}

void CallIdMapper::map_calls(const Dict& message) {
  for (const Value& each : fields_.calls_of(message)) {
    Dict& call = *each.dict;
    const Dict* const function = fields_.function_of(each);
    if (!function) continue;
    const Value* const given = text_field(call, fields_.id);
    if (const Value* const name = text_field(*function, fields_.name)) {
      const std::string id = given ? std::string(workspace_.flat(given->text)) : "";
      const std::string_view called = workspace_.flat(name->text);
      if (!has_form(id, called) && (given || !lettered_)) {
        Text*& known = of_call_[key_of(lettered_ ? "" : called, id)];
        if (!known || !given) known = lettered_ ? lettered_id(id) : named_id(name->text);
        set_field(workspace_, call, fields_.id, Value::of_text(known));
      }
      if (given) of_result_[id] = call.find(fields_.id)->text;
    }
    number_++;
  }
}

void CallIdMapper::map_result(Dict& message) {
  Value* const answered = message.find(fields_.tool_call_id);
  if (!answered || !answered->is_text()) return;
  const std::string id(workspace_.flat(answered->text));
  if (const auto found = of_result_.find(id); found != of_result_.end()) {
    *answered = Value::of_text(found->second);
  } else if (lettered_ && !has_form(id, "")) {
    *answered = Value::of_text(of_result_[id] = of_call_[key_of("", id)] = lettered_id(id));
  }
}

bool CallIdMapper::has_form(std::string_view id, std::string_view name) const {
  if (lettered_)
    return id.size() == kLettered &&
           std::all_of(id.begin(), id.end(), [](char c) { return kDigits.find(c) != kDigits.npos; });
  const size_t fixed = before_.size() + name.size() + between_.size() + behind_.size();
  return id.size() > fixed && id.starts_with(before_) && id.substr(before_.size()).starts_with(name) &&
         id.substr(before_.size() + name.size()).starts_with(between_) && id.ends_with(behind_) &&
         is_digits(id.substr(fixed - behind_.size(), id.size() - fixed));
}

Text* CallIdMapper::named_id(Text* name) {
  std::string number, id;
  uint64_t& next = next_[std::string(workspace_.flat(name))];
  next = std::max(next, number_);
  do {
    number = std::to_string(next++);
    id = before_ + std::string(workspace_.flat(name)) + between_ + number + behind_;
  } while (!taken_.insert(id).second);
  Rope rope(workspace_);
  rope.add(workspace_.copy(before_));
  rope.add(name);
  rope.add(workspace_.copy(between_ + number + behind_));
  return rope.finish();
}

// The letters are made of the given id, so that they are those of the next request, too.
Text* CallIdMapper::lettered_id(std::string_view given) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : given) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  std::string id(kLettered, '0');
  do {
    uint64_t rest = hash ^ hash >> 32;
    for (char& c : id) {
      c = kDigits[rest % kDigits.size()];
      rest /= kDigits.size();
    }
    hash += 0x9E3779B97F4A7C15 * ++collisions_;  // another one each time, so that equal hashes need no longer search
  } while (!taken_.insert(id).second);
  return workspace_.copy(id);
}

}  // namespace tokenweir::templates
