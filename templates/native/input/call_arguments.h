// Arguments of calls in the form that a template takes.
#pragma once

#include "input/message_fields.h"
#include "text/origin.h"

namespace tokenweir::templates {

enum class ArgumentForm : uint8_t { Object, Text, Either };

// Converts the arguments of a function, JSON text or an object, to the template's form; others stay.
void convert_arguments(Workspace& workspace, Origins& origins, const MessageFields& fields, ArgumentForm form,
                       Dict& function);

// Likewise, for arguments of any kind: none are an empty object, and where the template takes objects only, those that are no
// object become one, of the members that can be read. Returns whether text or values were left out, of which the origins tell.
bool mend_arguments(Workspace& workspace, Origins& origins, const MessageFields& fields, ArgumentForm form,
                    Dict& function);

}  // namespace tokenweir::templates
