"""Deltas over a connection: sessions, limits, sockets, the wire protocol and the chat page.

The way of a request:

    serve.py, protocols.py      a port, and uvicorn's connections with the bounds that it lacks
    app.py                      the ASGI application: what answers where
    entry/                      who may come in: keys, hosts, origins, how many at a time; limits.py: bounds
    http/                       the interfaces over HTTP: those that generate, and the others
    websocket.py, session.py    the socket of the Responses protocol
    job.py, generation.py       a request made ready, and its answer in flight; response_task.py: one of Responses
    service.py, conversations.py  what all connections share: engines, tokenizer, earlier responses
    monitoring/                 what operators are told: numbers, spans, a line a request
    failures.py                 errors as clients get them
    batch.py, pacer.py          when a frame is due, and what it is made of; outbox.py: to the socket
    tokens/                     render and derender, around an engine that somebody else asks
    peers.py                    several workers of one server: what they ask each other
    wire/                       the protocols, without I/O; page/ is the chat page
"""
