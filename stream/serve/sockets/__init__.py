"""The websocket of the Responses protocol: websocket.py is its ASGI side, session.py the conversation of one connection,
outbox.py the frames of an answer on their way to it.
"""
