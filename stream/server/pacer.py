"""Calls that are due at about the same time, by one timer: a thousand streams need no thousand timers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic

TICK = 0.004
"""Seconds within which calls share a timer; how late one may be."""


class Pacer:
    """Calls functions when they are due, or a few milliseconds later. It belongs to one event loop."""

    def __init__(self) -> None:
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
