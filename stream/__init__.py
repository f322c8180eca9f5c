"""Token ids to deltas, engines, chats and the server.

Rooms import only the rooms above their own line; `tests/test_import_order.py` checks every arrow.

    events/     values that travel: deltas, `Sampling`, `EngineStep`
    decode/     ids to deltas, without I/O: end tokens, thinking, tool calls, stop strings
    engines/    prompt ids to more ids: the `Engine` protocol, and one file an engine
    prompts/    prompts to ids: one by one, or many callers in one batch
    chat/       messages to deltas: the plan of an answer, `chat()`, async stages, several readers of one stream
    serve/      deltas over a connection: wire protocols, limits, HTTP, websockets, the chat page, workers
"""
