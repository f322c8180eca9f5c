// The form in which a template gets messages: as transformers gives them, and the kinds of content and arguments it takes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "input/call_arguments.h"
#include "input/message_checks.h"
#include "text/origin.h"
#include "values/value.h"

namespace tokenweir::templates {

// The form in which a template takes its input; made once a template.
struct MessageForm {
  Roles roles;
  bool takes_parts;  // else a content of parts becomes one text
  ArgumentForm arguments;
  std::vector<std::pair<std::string, std::string>> special_tokens;  // variables and their texts
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

  // Messages that are to be tidied keep their contents and arguments, and may lack contents.
  void shape(List& messages, bool tidied);
  // Appends the tag to the field; the text that was there is returned.
  Text* mark_end(List& messages, const Continuation& continuation);

  // The role of a message, which stays a symbol of the render.
  const Symbol* role(const Value& message) const;

 private:
  void alias_reasoning(Dict*& message);
  void flatten(Dict& message, uint32_t index);

  Workspace& workspace_;
  Origins& origins_;
  const MessageForm& form_;
  const MessageFields fields_;
};

}  // namespace tokenweir::templates
