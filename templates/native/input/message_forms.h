// The form in which a template gets messages: as transformers gives them, and the kinds of content and arguments it takes.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "input/message_checks.h"
#include "text/origin.h"
#include "values/value.h"

namespace tokenweir::templates {

enum class ArgumentForm : uint8_t { Object, Text, Either };

// The form in which a template takes its input; made once a template.
struct MessageForm {
  Roles roles;
  bool takes_parts;  // else a content of parts becomes one text
  ArgumentForm arguments;
  std::vector<std::pair<std::string, std::string>> special_tokens;  // variables and their texts
};

// Changes of calls to the form that the model knows; no change by default.
struct CallMending {
  std::string ids;    // the form of ids, with {name} and {number}
  bool part = false;  // calls get a message of their own, whose content is None
};

// A field of the last message that the model continues.
struct Continuation {
  std::string field;
  std::string tag;
  std::string_view source;  // of the template, which must read the field
};

// Checks messages, and changes them in place, so they must not be shared. As in transformers, fields whose value is None
// are dropped, and reasoning is given under the names that templates read.
class MessageShaper {
 public:
  MessageShaper(Workspace& workspace, Origins& origins, const MessageForm& form);

  void shape(List& messages);
  void mend(List& messages, const CallMending& mending);
  // Appends the tag to the field; the text that was there is returned.
  Text* mark_end(List& messages, const Continuation& continuation);

  // The role of a message, which stays a symbol of the render.
  const Symbol* role(const Value& message) const;

 private:
  void set(Dict& dict, Symbol* name, const Value& value);
  void alias_reasoning(Dict*& message);
  void flatten(Dict& message, uint32_t index);
  void convert_arguments(Dict& function);
  Dict* function_of(const Value& call) const;
  void name_calls(Dict& message, const std::string& form, uint64_t& number,
                  std::unordered_map<std::string, Text*>& ids);
  Text* call_id(const std::string& form, Text* name, std::string_view number) const;
  Dict* without_content(const Dict& message, bool all_fields);

  Workspace& workspace_;
  Origins& origins_;
  const MessageForm& form_;
  Symbol *const role_,
      *const content_, *const tool_calls_, *const function_,
                                               *const name_, *const arguments_,
                                                                 *const id_, *const tool_call_id_,
                                                                                 *const text_, *const type_,
                                                                                                   *const reasoning_[3];
};

}  // namespace tokenweir::templates
