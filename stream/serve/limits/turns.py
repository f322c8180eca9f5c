"""Turns of parsing long messages, which would otherwise block the event loop too long."""

from __future__ import annotations

import asyncio

LONG = 1 << 15
"""Size in bytes from which a message waits for its turn."""


class Turns:
    """Limiter to one long message per turn of the event loop. It belongs to one event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, size: int) -> None:
        """Wait until a message of this size may be parsed, which is to be done before anything is awaited."""
        if size >= LONG:
            async with self._lock:
                await asyncio.sleep(0)  # ready tasks run first
