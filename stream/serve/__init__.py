"""Deltas over a connection: sessions, limits, sockets, the wire protocol and the chat page.

The way of a request:

    serve.py, protocols.py      a port, and uvicorn's connections with the bounds that it lacks
    app.py                      the ASGI application: what answers where
    entry/                      who may come in: keys, hosts, origins, how many at a time; limits.py: bounds
    http/                       the interfaces over HTTP: those that generate, and the others
    websocket.py, session.py    the socket of the Responses protocol
    answers/                    a request made ready, its answer in flight, and when its next frame is due
    outbox.py                   from an answer to the socket
    service.py                  what all connections share: engines, tokenizer, earlier responses
    monitoring/                 what operators are told: numbers, spans, a line a request
    failures.py                 errors as clients get them
    tokens/                     render and derender, around an engine that somebody else asks
    peers.py                    several workers of one server: what they ask each other
    wire/                       the protocols, without I/O; page/ is the chat page
"""
