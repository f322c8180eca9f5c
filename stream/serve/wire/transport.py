"""Connections as a session sees them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol


class Transport(Protocol):
    """A connection that carries messages."""

    async def receive(self) -> str | bytes | None:
        """Return the next message: a text frame as `str`, a binary one as `bytes`; None once the connection is gone."""
        ...

    def send(self, data: bytes) -> Awaitable[None] | None:
        """Send a text frame of UTF-8, whole; no effect once the connection is gone.

        What it gives, such as the coroutine of an `async def`, is awaited before the next frame; None asks for it at
        once.
        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """End the connection, by force if the other side does not go along."""
        ...
