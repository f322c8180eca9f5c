"""uvicorn's server with the bounds that it lacks: server.py listens on a port, listener.py makes room when file descriptors run
out, and http_protocol.py and socket_protocol.py bound connections, whose input paced_input.py parses in pieces.
"""
