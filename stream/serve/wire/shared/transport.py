"""Connections as a session sees them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol


class Transport(Protocol):
    """A connection that carries whole messages, such as a websocket, as `Session` uses it."""

    async def receive(self) -> str | bytes | None:
        """Wait for the next message and return it; None once the connection is gone.

        A text frame is a `str`, a binary one `bytes`.
        """
        ...

    def send(self, data: bytes) -> Awaitable[None] | None:
        """Send a text frame; no effect once the connection is gone.

        Args:
            data: The whole message, in UTF-8.

        Returns:
            An awaitable that the caller awaits before it sends the next frame, or None if it may send the next one at
            once.

        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close the connection with a websocket close code and reason, by force if the other side does not respond."""
        ...
