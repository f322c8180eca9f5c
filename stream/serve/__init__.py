"""The server: chats over HTTP and websockets.

`options.py` declares the options, for `serve()`, the command line and the documentation. Rooms import only the rooms above
their own line.

    wire/         the protocols, without I/O, a room for each
    limits/       bounds on what clients cost: `Limits`, admission of connections and answers, turns of parsing
    monitoring/   metrics, spans, access log, and failures as clients are told of them
    page/         the chat page
    answers/      a request resolved, its answer in flight, and the pacing of its frames
    http/         the interfaces over HTTP: those that generate, and the others
    tokens/       render and derender, in front of an engine that another process runs
    sockets/      the websocket of the Responses protocol
    workers/      requests between the workers of one server
    app/          the ASGI application: keys, hosts and origins, routes
    transport/    uvicorn's server with the bounds that it lacks
"""
