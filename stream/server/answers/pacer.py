"""When the answers of a server go out: how often, and calls that are due at about the same time by one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

TICK = 0.004
"""Seconds within which calls share a timer; how late one may be."""


class Pacer:
    """Calls functions when they are due, or a few milliseconds later: a thousand streams need no thousand timers.

    It belongs to one event loop.

    Attributes:
        interval: Seconds between two events of a stream, at the present load.

    """

    def __init__(self, interval: float = 0.0) -> None:
        self.interval = interval
        self._ticks: dict[int, list[Callable[[], object]]] = {}

    def call_at(self, when: float, call: Callable[[], object]) -> None:
        """Call a function, which must not raise, at a time of `time.monotonic`."""
        tick = int(when / TICK) + 1
        calls = self._ticks.get(tick)
        if calls is None:
            self._ticks[tick] = [call]
            asyncio.get_running_loop().call_later(tick * TICK - monotonic(), self._fire, tick)
        else:
            calls.append(call)

    def _fire(self, tick: int) -> None:
        for call in self._ticks.pop(tick):
            call()
