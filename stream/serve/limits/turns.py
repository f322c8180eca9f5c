"""Turns of those who send a lot: parsing a megabyte takes milliseconds, in which the event loop does nothing else."""

from __future__ import annotations

import asyncio

LONG = 1 << 15
"""Bytes of a message from which on it waits for its turn."""


class Turns:
    """Lets one long message a turn of the event loop be parsed. It belongs to one event loop."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def take(self, size: int) -> None:
        """Wait until a message of this size may be parsed, which is to be done before anything is awaited."""
        if size >= LONG:
            async with self._lock:
                await asyncio.sleep(0)  # all that is ready goes first
