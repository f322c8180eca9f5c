"""Ids to deltas, engines, serving.

The way of the data, by folder:

    prompts/    texts and prompts to ids: one by one, in order, or many callers in one batch
    engines/    prompt ids to more ids: the `Engine` protocol, and one file an engine
    decode/     ids to deltas, without I/O: decoding, end tokens, thinking, tool calls, stop strings
    pipeline/   the same as async generators, and `chat()`, which ties all of it together
    delivery/   one stream of deltas for one reader, several, and those that come back
    server/     deltas over a connection: sessions, limits, the wire protocol, the chat page

`events.py` has the deltas themselves, which every folder knows.
"""
