// Messages of OpenAI's Chat Completions, as templates take them.
#pragma once

#include "input/messages.h"

namespace tokenweir::templates {

// Gives messages the form that the server's `chat_messages` gives them, in place. False, with the messages as they were, if
// they are not plain: something is wrong with them, or they have a part that is no text.
bool shape_chat_messages(Messages& messages);
// The messages with the parts of their contents and their calls.
uint64_t count_chat_items(const Messages& messages);

}  // namespace tokenweir::templates
