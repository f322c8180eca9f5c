// Checks of the messages, tools and documents that a chat template gets. All raise BadInput, with the place.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "values/value.h"

namespace tokenweir::templates {

// Levels of lists and objects in a message, tool, document or in all variables.
inline constexpr int kMostInputDepth = 64;

// Messages of errors that readers find; `name` is `messages`, `tools` or `documents`, and `place` an item of one.
std::string not_a_list(const std::string& name, const std::string& type);
std::string not_a_mapping(const std::string& place, const std::string& type);
std::string nested_too_deep(const std::string& place);

using Roles = std::set<std::string, std::less<>>;

// `part` is an object, the one of a message's content at `index`.
std::string not_a_text(Workspace& workspace, const Value& part, uint32_t message, uint32_t index);

// Whether messages of a role have the results of calls.
bool is_result_role(std::string_view role);
// Roles are pasted into control text, hence only those that are listed. Unless content is needed, results and messages of the
// assistant may lack it.
void check_messages(Workspace& workspace, const List& messages, const Roles& roles, bool needs_content = true);
void check_tools(Workspace& workspace, const List& tools);

}  // namespace tokenweir::templates
