// Messages of OpenAI's Chat Completions, as templates take them.
#pragma once

#include "input/messages.h"

namespace tokenweir::templates {

// Brings messages, in place, into the form that the server's `chat_messages` makes. Returns false and changes nothing if
// they are invalid or have a part that is not text.
bool shape_chat_messages(Messages& messages);
// Returns the number of messages, of parts of their contents and of their calls, together.
uint64_t count_chat_items(const Messages& messages);

}  // namespace tokenweir::templates
