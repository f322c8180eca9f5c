"""When the answers of a server go out: how often, and calls that are due at about the same time by one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic, thread_time

TICK = 0.002
"""Seconds within which calls share a timer; how late one may be."""
LOOK = 0.05
"""Seconds between two looks at the load."""
MEMORY = 1.0
"""Seconds over which the load is a mean: one look has a burst of frames in it, or a pause."""
EASY = 0.45
"""The load below which events go as often as they may again: less than what is left when the interval is longer."""
STEADY = 0.6
"""The load from which on the interval is a few times the shortest one."""
FULL = 0.8
"""The load above which the interval grows to the longest one."""
FEW = 2.8
"""How many times the shortest interval that is."""


class Pacer:
    """Says how long the events of a stream may wait, by the load of the event loop; and calls what is due.

    The load is the share of its time in which the loop's thread works. At first the interval is the shortest one. Above
    `STEADY` it is `FEW` times that, until the load falls below `EASY`; above `FULL` it grows, and with no time left it is
    the longest. An interval that followed the load all the way would swing, since the load follows it: longer intervals
    make fewer frames. And where it is about as long as the time between two tokens, some of them wait for two more. A loop
    that is late for another reason, since other processes have the core, counts as one that works.

    It belongs to one event loop. A thousand streams need no thousand timers: calls may come a few milliseconds late.

    Args:
        least: Seconds between two events of a stream while the loop has time; with 0 nothing ever waits.
        most: The same when it has none.

    Attributes:
        interval: The same at the present load.
        busy: Whether the load is above `FULL`, so that an event holds several tokens of most streams.

    """

    def __init__(self, least: float = 0.0, most: float = 0.0) -> None:
        self.interval = least
        self.busy = False
        self._least = least
        self._most = max(least, most) if least else 0.0
        self._few = min(FEW * least, self._most)
        self._load = 0.0
        self._steady = False
        self._ticks: dict[int, list[Callable[[], object]]] = {}
        self._looking: asyncio.TimerHandle | None = None
        self._looked = self._worked = 0.0

    def call_at(self, when: float, call: Callable[[], object]) -> None:
        """Call a function, which must not raise, at a time of `time.monotonic`."""
        tick = int(when / TICK) + 1
        calls = self._ticks.get(tick)
        if calls is None:
            self._ticks[tick] = [call]
            asyncio.get_running_loop().call_later(tick * TICK - monotonic(), self._fire, tick)
        else:
            calls.append(call)

    def reach(self, when: float) -> asyncio.Future[None]:
        """A future that is done at a time of `time.monotonic`."""
        reached = asyncio.get_running_loop().create_future()
        self.call_at(when, partial(_finish, reached))
        return reached

    def _fire(self, tick: int) -> None:
        for call in self._ticks.pop(tick):
            call()

    def start(self) -> None:
        """Look at the load from now on, until `stop`."""
        if self._looking is None:
            self._look_later()

    def stop(self) -> None:
        """Nothing is to be sent: the loop may sleep."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self.interval, self.busy, self._load, self._steady = self._least, False, 0.0, False

    def see(self, load: float, seconds: float = LOOK) -> None:
        """Take a look into account, and how long it was; `load` is above 1 if the loop was late as well."""
        self._load += min(1.0, seconds / MEMORY) * (min(1.0, load) - self._load)
        self._steady = self._load > (EASY if self._steady else STEADY)
        full = max(0.0, (self._load - FULL) / (1.0 - FULL))
        self.interval = self._few + full * (self._most - self._few) if self._steady else self._least
        self.busy = self._load > FULL and self._most > self._few

    def _look(self) -> None:
        took, worked = monotonic() - self._looked, thread_time() - self._worked
        self.see((worked + max(0.0, took - LOOK)) / took, took)
        self._look_later()

    def _look_later(self) -> None:
        self._looked, self._worked = monotonic(), thread_time()
        self._looking = asyncio.get_running_loop().call_later(LOOK, self._look)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
