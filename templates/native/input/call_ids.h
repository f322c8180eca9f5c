// Ids of calls in the form that a template takes.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "input/message_fields.h"

namespace tokenweir::templates {

// Rewrites the ids of calls and of their results, where they do not have the form. Equal ids of one function stay equal, and
// different ones different.
class CallIdMapper {
 public:
  // `form` has {name} and {number} for an id that tells the function and the number of the call, or {letters} for one of nine
  // ASCII letters and digits.
  CallIdMapper(Workspace& workspace, const MessageFields& fields, const std::string& form);

  void map(List& messages);

 private:
  void reserve(const Dict& message);
  void map_calls(const Dict& message);
  void map_result(Dict& message);
  // Whether an id has the form, for a call of this function.
  bool has_form(std::string_view id, std::string_view name) const;
  Text* named_id(Text* name);
  Text* lettered_id(std::string_view id);

  Workspace& workspace_;
  const MessageFields& fields_;
  const std::string before_, between_, behind_;  // the form around name and number
  const bool lettered_;
  uint64_t number_ = 0;                               // of the next call
  uint64_t collisions_ = 0;                           // of ids of letters
  std::unordered_set<std::string> taken_;             // ids that no other call may get
  std::unordered_map<std::string, uint64_t> next_;    // by function, a number below which none is free
  std::unordered_map<std::string, Text*> of_call_;    // new ids, by function and given id
  std::unordered_map<std::string, Text*> of_result_;  // new ids of the last calls, by the given id
};

}  // namespace tokenweir::templates
