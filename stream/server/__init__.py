"""Deltas over a connection: sessions, limits, sockets, the wire protocol and the chat page."""
