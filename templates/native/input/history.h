// Histories as clients send them, brought into the form that a template takes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "input/call_arguments.h"
#include "input/message_fields.h"
#include "text/origin.h"
#include "values/value.h"

namespace tokenweir::templates {

// A message's content if it has none.
enum class NoContent : uint8_t { Absent, None, Empty };

// The forms of a content that a template writes, for messages of one role.
struct ContentForm {
  bool text = true, parts = false;
};

// The form in which a template takes a history; made once a template.
struct HistoryForm {
  ArgumentForm arguments;
  ContentForm system, user, assistant, tool;
  NoContent of_calls, of_answer;  // of the assistant's messages with calls, and without
  bool replaces_empty;            // an empty content beside calls counts as none
  bool parts_calls;               // calls beside a content get a message of their own
  bool single_calls;              // each call gets a message of its own, with its results behind it
  bool orders_results;            // results are put in the order of their calls
  bool takes_late_results;        // results are written behind messages that follow their calls
  bool takes_orphans;             // results without their calls are written
  bool joins_thinking;            // a content beside thinking and calls becomes part of the thinking
  bool joins_system;              // of the system's messages at the beginning one is written only
  bool takes_later_system;        // a system's message is written at its place among the others
  bool takes_developer;           // the role "developer" is written; otherwise it is the system
  bool needs_ids;                 // calls and results without ids are refused
  std::string call_ids;           // as for `CallIdMapper`; empty: any
};

// Changes messages in place, once `MessageShaper` has shaped them. Texts keep their origins.
class HistoryTidier {
 public:
  HistoryTidier(Workspace& workspace, Origins& origins, const HistoryForm& form);

  // If the last message is continued, it stays one message, with its content.
  void tidy(List& messages, bool is_continued);
  // Paths of the arguments that were changed and lost text.
  const std::vector<std::string>& mended() const { return mended_; }

 private:
  void tidy_content(Dict& message, const ContentForm& form, uint32_t index);
  void join(Value& content, const ContentForm& form, uint32_t index);
  Text* text_of(const Value& part) const;
  Value text_part(const Value& text) const;
  // Two texts with an empty line between them.
  Value paragraphs(const Value& first, const Value& second) const;
  void set_no_content(Dict& message, NoContent form);
  void mend_calls(const List& calls, uint32_t index);
  void check_results(const List& messages);
  void gather_results(List& messages);
  void order_results(List& messages, uint32_t first) const;
  void join_thinking(Dict& message);
  void join_system(List& messages);
  void add_paragraph(Dict& message, const Value& content);
  void add_ids(List& messages);
  void part_calls(List& messages, uint32_t end);
  void split_calls(List& messages, uint32_t end);
  bool is_result(const Value& message) const;
  std::string_view id_of(const Dict& dict, const Symbol* name) const;
  std::unordered_map<std::string_view, uint32_t> places_of(const List& calls) const;

  Workspace& workspace_;
  Origins& origins_;
  const HistoryForm& form_;
  const MessageFields fields_;
  std::vector<std::string> mended_;
};

}  // namespace tokenweir::templates
