"""Pacing of a server's frames: the interval between the events of a stream, by the load of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic, thread_time
from typing import NamedTuple

from tokenweir.encode.base.platform import thread_wait

TICK = 0.002
"""Seconds within which calls share a timer, and by which one may be late."""
SAMPLE_INTERVAL = 0.05
"""Seconds between two samples of the load."""
LOAD_WINDOW = 1.0
"""Seconds over which the load is averaged: a single sample may hold a burst of frames, or a pause."""
LOW_LOAD = 0.45
"""Load below which the interval becomes the shortest one again. Hysteresis: lower than `HIGH_LOAD`."""
HIGH_LOAD = 0.6
"""Load above which the interval is `RELAXED_FACTOR` times the shortest one."""
FULL_LOAD = 0.8
"""Load above which the interval grows towards the longest one."""
RELAXED_FACTOR = 2.8
"""Interval above `HIGH_LOAD`, as a multiple of the shortest one."""


class _Clocks(NamedTuple):
    """Readings of the clocks of an event loop's thread, in seconds.

    Attributes:
        at: Monotonic time.
        worked: CPU time of the thread.
        waited: Time in which the thread was ready to run but had no core.
        input: Time spent on parsing clients' input.

    """

    at: float
    worked: float
    waited: float
    input: float


class Pacer:
    """Sets the interval between the events of a stream by the load of the event loop, and runs timed calls.

    The load is the share of time in which the loop's thread works or waits for a core. Parsing of clients' input does
    not count: longer intervals would not reduce it, and one client that sends a lot would delay everybody's tokens. The
    interval is `least` up to the load `HIGH_LOAD`, and `RELAXED_FACTOR` times that above it, until the load falls below
    `LOW_LOAD`. Above `FULL_LOAD` it grows; at load 1 it is `most`.

    The interval does not follow the load continuously. Longer intervals make fewer frames and so lower the load, and
    both would oscillate. And with an interval of about the time between two tokens, some tokens wait for two more.

    A pacer belongs to one event loop. Its timed calls share timers; a call may be late by a few milliseconds.

    Args:
        least: Seconds between two events of a stream on an idle loop; with 0 events are never delayed.
        most: Seconds between two events of a stream on a fully loaded loop.
        input_seconds: Returns the total seconds that the loop has spent on clients' input so far.

    Attributes:
        interval: Seconds between two events at the present load.
        busy: Whether the load is above `FULL_LOAD`, so that an event holds several tokens of most streams.

    """

    def __init__(self, least: float = 0.0, most: float = 0.0, input_seconds: Callable[[], float] = lambda: 0.0) -> None:
        self.interval = least
        self.busy = False
        self._least = least
        self._most = max(least, most) if least else 0.0
        self._relaxed = min(RELAXED_FACTOR * least, self._most)
        self._load = 0.0
        self._high = False
        self._ticks: dict[int, list[Callable[[], object]]] = {}
        self._sampler: asyncio.TimerHandle | None = None
        self._input_seconds = input_seconds
        self._clocks = _Clocks(0.0, 0.0, 0.0, 0.0)  # at the last sample

    def call_at(self, when: float, call: Callable[[], object]) -> None:
        """Call a function at a time of `time.monotonic`, or up to a few milliseconds later; it must not raise."""
        tick = int(when / TICK) + 1
        calls = self._ticks.get(tick)
        if calls is None:
            self._ticks[tick] = [call]
            asyncio.get_running_loop().call_later(tick * TICK - monotonic(), self._fire, tick)
        else:
            calls.append(call)

    def reach(self, when: float) -> asyncio.Future[None]:
        """Return a future that is done at a time of `time.monotonic`, or up to a few milliseconds later."""
        reached = asyncio.get_running_loop().create_future()
        self.call_at(when, partial(_finish, reached))
        return reached

    def _fire(self, tick: int) -> None:
        for call in self._ticks.pop(tick):
            call()

    def start(self) -> None:
        """Start to sample the load regularly, until `stop`; a no-op if sampling has started."""
        if self._sampler is None:
            self._sample_later(self._read_clocks())

    def stop(self) -> None:
        """Stop sampling, so that an idle loop sleeps, and reset the load to 0."""
        if self._sampler is not None:
            self._sampler.cancel()
            self._sampler = None
        self.interval, self.busy, self._load, self._high = self._least, False, 0.0, False

    def observe(self, load: float, seconds: float = SAMPLE_INTERVAL) -> None:
        """Update the averaged load and the interval by a sample.

        Args:
            load: The load in the time of the sample; more than 1, which counts as 1, if the loop was late as well.
            seconds: Duration of the sample.

        """
        self._load += min(1.0, seconds / LOAD_WINDOW) * (min(1.0, load) - self._load)
        self._high = self._load > (LOW_LOAD if self._high else HIGH_LOAD)
        full = max(0.0, (self._load - FULL_LOAD) / (1.0 - FULL_LOAD))
        self.interval = self._relaxed + full * (self._most - self._relaxed) if self._high else self._least
        self.busy = self._load > FULL_LOAD and self._most > self._relaxed

    def _sample(self) -> None:
        now = self._read_clocks()
        took, worked, waited, input_ = (end - start for end, start in zip(now, self._clocks, strict=True))
        own, late = max(0.0, worked - input_), max(0.0, took - input_ - SAMPLE_INTERVAL)
        waited *= own / max(worked, TICK)  # the input's part is not theirs
        self.observe((own + max(late, waited)) / took, took)
        self._sample_later(now)

    def _sample_later(self, now: _Clocks) -> None:
        self._clocks = now
        self._sampler = asyncio.get_running_loop().call_later(SAMPLE_INTERVAL, self._sample)

    def _read_clocks(self) -> _Clocks:
        return _Clocks(monotonic(), thread_time(), thread_wait(), self._input_seconds())


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
