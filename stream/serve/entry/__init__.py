"""The ASGI application and its server: options.py checks and resolves the options, application.py routes requests,
guard.py and auth.py control access, http_protocol.py and socket_protocol.py bound uvicorn's connections, whose input
paced_input.py parses in pieces, server.py listens on a port, listener.py makes room when file descriptors run out, and
memory.py sets the garbage collector and the allocator.
"""
