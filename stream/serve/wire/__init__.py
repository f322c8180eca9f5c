"""Wire formats, sans-I/O, to and from our own events: a group of files for each protocol.

Responses: requests.py comes in, with input_items.py, their calls (call_items.py) and their contents (input_parts.py);
conversation.py makes them messages for a template, and response_tools.py makes functions of all tools. responses.py and
items.py make events.py and response_object.py, which go out; custom_input.py reads the input of a custom tool for them.
kept_events.py merges events that wait; compaction.py packs conversations. Chat Completions: chat.py, chat_messages.py and
leftovers.py in, chat_answers.py out. Completions: completions.py. Messages: anthropic/. All of them use checking.py,
contents.py and errors.py; marks.py has fields without effect, and prompt_end.py the fields that continue a message.
"""
