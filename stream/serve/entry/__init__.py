"""The ASGI application and its server: application.py routes requests, guard.py and auth.py control access,
protocols.py bounds uvicorn's connections, and server.py listens on a port.
"""
