"""The ASGI application: options.py checks and resolves the options, application.py routes requests, guard.py and auth.py control
access, and memory.py sets the garbage collector and the allocator of a process that is a server and nothing else.
"""
