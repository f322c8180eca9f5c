"""Parts of several protocols.

`checking.py` parses and bounds bodies, `errors.py` has the errors; `contents.py` reads the parts of a message, and
`message_builder.py` makes messages for a template. `fields.py`, `prompt_end.py` and `marks.py` are fields of requests, the last
ones without effect; `tool_names.py` has the names of tools as models see them. `answer_format.py` is the base of answers,
`sse.py` has their events, `ids.py` and `logprobs.py` their parts.
`transport.py` is a connection as a session sees it.
"""
