"""Deltas over a connection: sessions, limits, sockets, the wire protocol and the chat page.

The way of a request:

    serve.py, protocols.py      a port, and uvicorn's connections with the bounds that it lacks
    app.py                      the ASGI application: what answers where
    guard.py, auth.py           who may come in: keys, hosts, origins; admission.py: how many at a time, limits.py: bounds
    api.py, endpoints.py        the interfaces over HTTP: those that generate, and the others
    websocket.py, session.py    the socket of the Responses protocol
    job.py, generation.py       a request made ready, and its answer in flight; response_task.py: one of Responses
    service.py, conversations.py  what all connections share: engines, tokenizer, earlier responses
    metrics.py, tracing.py      what monitors are told: numbers, and a span for each answer; access_log.py: a line a request
    exchange.py, failures.py    an answer over HTTP; errors as clients get them
    tokens/                     render and derender, around an engine that somebody else asks
    peers.py                    several workers of one server: what they ask each other
    wire/                       the protocols, without I/O; page/ is the chat page
"""
