// Static scopes: where each variable of a template lives.
//
// A scope is the root, the body of a loop, macro, block or `with`; `if` has none. A name that is set anywhere in a scope is
// a slot of that scope, and unset at its beginning: reading falls back to the next scope outside, and last to the
// input. Slots are cleared at each turn of a loop, which is how a turn begins with the outer values.
#pragma once

#include <set>
#include <string_view>

#include "language/tree.h"

namespace tokenweir::templates {

struct Resolved {
  uint16_t slots;                        // that the root needs
  std::set<std::string_view> variables;  // that may be read from the input
};

// Fills in the places and slots of a tree. Raises Failure.
Resolved resolve_scopes(Workspace& workspace, Nodes statements);

}  // namespace tokenweir::templates
