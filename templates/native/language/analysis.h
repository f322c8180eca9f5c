// The data that a template expects, as its tree shows it.
#pragma once

#include <string_view>

#include "language/tree.h"

namespace tokenweir::templates {

// Whether some loop is over a message's content, which is a list of parts then.
bool iterates_over_content(Nodes statements);
// "object", "text" or "either": the form in which the arguments of tool calls are taken.
std::string_view argument_form(Nodes statements);
// Whether there is a generation block.
bool marks_generation(Nodes statements);

}  // namespace tokenweir::templates
