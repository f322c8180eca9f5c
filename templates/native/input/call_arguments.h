// Arguments of calls in the form that a template takes.
#pragma once

#include "input/message_fields.h"
#include "text/origin.h"

namespace tokenweir::templates {

enum class ArgumentForm : uint8_t { Object, Text, Either };

// Converts the arguments of a function, JSON text or an object, to the template's form; others stay. Lone surrogates in JSON text
// are refused, or replaced by U+FFFD if `replaced` is given, which then tells whether there were any.
void convert_arguments(Workspace& workspace, Origins& origins, const MessageFields& fields, ArgumentForm form,
                       Dict& function, bool* replaced = nullptr);

// Does so for arguments of any kind, and replaces lone surrogates. Absent ones become an empty object. Where the template takes objects only, others become
// the object of the members that can be read. Returns whether text or values were left out; the origins tell which.
bool mend_arguments(Workspace& workspace, Origins& origins, const MessageFields& fields, ArgumentForm form,
                    Dict& function);

}  // namespace tokenweir::templates
