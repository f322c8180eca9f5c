"""OpenAI's Responses, sans-I/O.

`requests.py` comes in, with `input_items.py`, their calls (`call_items.py`) and contents (`input_parts.py`);
`response_tools.py` makes functions of all tools. `response_stream.py` and `items.py` make `events.py` and `response_object.py`,
which go out; `custom_input.py` reads the input of a custom tool for them. `kept_events.py` merges events that wait, and
`compaction.py` packs conversations.
"""
