"""Places for work that keeps the interpreter busy, such as rendering a prompt: few at once, shared fairly by clients.

While a thread runs Python, the event loop gets the interpreter's lock only when the thread is made to give it up. So few
threads work at once, a long piece of work never takes the last place, and threads switch more often meanwhile.

Who is next is decided by self-clocked fair queueing (Golestani 1994): each piece of work has a tag, which is the tag of
its client's last one, or of what began last, and its cost. The lowest tag begins. A client that brings a lot of work
waits for itself, and one that brings a little does not wait for the others' backlog. Large and other work of one client
have tags of their own, since a client may stand for many people: an address of a proxy.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any

from tokenweir.stream.prompts.batching.worker_thread import STARTED
from tokenweir.stream.serve.limits.admission import full

CLIENT: ContextVar[str] = ContextVar("client", default="")
"""The client of the current task: its key, or else its address."""

LARGE = 1 << 16
"""Cost from which on work counts as large."""

SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread is asked to let others run, while there is work. The event loop may have to ask after
each of its writes to a socket, and Python's usual 5 ms would add up."""


class _Waiter:
    """A piece of work that waits for a place; `tag` decides the order, the lowest is first."""

    __slots__ = ("client", "cost", "future", "large", "tag")

    def __init__(self, client: str, cost: int, tag: int) -> None:
        self.client = client
        self.cost = cost
        self.large = cost >= LARGE
        self.tag = tag
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class FairQueue:
    """Queue for work in threads: a few places, which clients share fairly. It belongs to one event loop.

    Args:
        places: Number of places. Large work leaves one of them free, if there are several.
        max_waiting: Most pieces of work that wait. Beyond it, the last one of the client with the largest backlog is
            refused.
        max_waiting_cost: Most total cost of the waiting work. Beyond it, work is refused in the same way.
        timeout: Seconds after which waiting work is refused.

    """

    def __init__(self, places: int, *, max_waiting: int, max_waiting_cost: int, timeout: float) -> None:
        self._free = places
        self._free_large = max(1, places - 1)
        self._max_waiting = max_waiting
        self._max_waiting_cost = max_waiting_cost
        self._timeout = timeout
        self._waiting: list[_Waiter] = []
        self._clock = 0

    @asynccontextmanager
    async def place(self, cost: int) -> AsyncIterator[None]:
        """Wait for a place, and hold it as long as the context lasts, and the work by `run_in_thread` inside it.

        Args:
            cost: Estimated duration of the work; the unit is about the time for a byte of text.

        Raises:
            RequestError: Too much work waits already, or this has waited for too long; the status is 503.

        """
        client = CLIENT.get()
        large = cost >= LARGE
        before = (one.tag for one in self._waiting if one.client == client and one.large == large)
        waiter = _Waiter(client, cost, max(before, default=self._clock) + cost)
        self._waiting.append(waiter)
        self._begin_next()
        if not waiter.future.done():
            await self._wait(waiter)
        started: list[Future[Any]] = []
        collecting = STARTED.set(started)
        switches = ExitStack()
        switches.enter_context(_short_switches())
        try:
            yield
        finally:
            STARTED.reset(collecting)
            _when_done(started, switches.close, partial(self._end, waiter))

    async def _wait(self, waiter: _Waiter) -> None:
        try:
            self._bound()
            async with asyncio.timeout(self._timeout):
                await waiter.future
        except BaseException as error:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
                self._end(waiter)  # it was let in at the same moment
            if isinstance(error, TimeoutError):
                raise full(f"for {self._timeout:g} s there was no place to encode or decode text") from None
            raise

    def _bound(self) -> None:
        """While too much work waits, refuse the last piece of the client with the largest backlog."""
        while True:
            count, cost = len(self._waiting), sum(waiter.cost for waiter in self._waiting)
            if count > self._max_waiting:
                reason = f"{self._max_waiting} requests wait for text to be encoded or decoded, which is the limit"
            elif cost > self._max_waiting_cost and count > 1:
                reason = "the requests that wait for text to be encoded or decoded are too long together"
            else:
                return
            backlog: dict[str, tuple[int, int]] = {}
            for waiter in self._waiting:
                number, cost = backlog.get(waiter.client, (0, 0))
                backlog[waiter.client] = number + 1, cost + waiter.cost
            by_count = count > self._max_waiting
            greediest = max(backlog, key=lambda client: backlog[client] if by_count else backlog[client][::-1])
            last = next(waiter for waiter in reversed(self._waiting) if waiter.client == greediest)
            self._waiting.remove(last)
            if not last.future.done():  # cancelled, and its task has not had its turn yet
                last.future.set_exception(full(reason))

    def _begin_next(self) -> None:
        """Give free places to waiting work, lowest tag first; large work never gets the last of several places."""
        while self._free:
            fitting = [
                waiter
                for waiter in self._waiting
                if not waiter.future.done() and (self._free_large or not waiter.large)
            ]
            if not fitting:
                return
            first = min(fitting, key=lambda waiter: waiter.tag)
            self._waiting.remove(first)
            self._clock = max(self._clock, first.tag)
            self._free -= 1
            self._free_large -= first.large
            first.future.set_result(None)

    def _end(self, waiter: _Waiter) -> None:
        self._free += 1
        self._free_large += waiter.large
        self._begin_next()


def _when_done(works: Sequence[Future[Any]], anywhere: Callable[[], None], in_loop: Callable[[], None]) -> None:
    """Call two functions once the last one of these works has ended, at once if it has.

    `anywhere` may be called in the thread of the work, also when the event loop is closed by then; `in_loop` may not.
    """
    if not works or works[-1].done():
        anywhere()
        in_loop()
        return
    loop = asyncio.get_running_loop()

    def end(_: Future[Any]) -> None:
        anywhere()
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(in_loop)

    works[-1].add_done_callback(end)


_switching = Lock()
_usual_intervals: list[float] = []  # the process's own, once for each piece of work that is running


@contextmanager
def _short_switches() -> Iterator[None]:
    """Shorten the interpreter's thread switch interval in the context; the last one that is left restores it."""
    with _switching:
        _usual_intervals.append(_usual_intervals[-1] if _usual_intervals else sys.getswitchinterval())
        if len(_usual_intervals) == 1:
            sys.setswitchinterval(min(SWITCH_INTERVAL, _usual_intervals[0]))
    try:
        yield
    finally:
        with _switching:
            usual = _usual_intervals.pop()
            if not _usual_intervals:
                sys.setswitchinterval(usual)
