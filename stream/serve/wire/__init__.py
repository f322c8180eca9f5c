"""Wire formats, sans-I/O, to and from our own events: a group of files for each protocol.

Responses: requests.py and input_items.py come in, and conversation.py makes them messages for a template. responses.py and
items.py make events.py and response_object.py, which go out. kept_events.py merges events that wait; compaction.py
packs conversations. Chat Completions: chat.py, chat_messages.py and leftovers.py in, chat_answers.py out. Completions:
completions.py. Messages: anthropic/. All of them use checking.py, contents.py and errors.py.
"""
