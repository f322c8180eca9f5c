"""Turns of clients' input: a share of each turn of the event loop, which clients spend in turn.

Streams are late by as long as a turn takes. One turn runs all callbacks that are ready, so without a bound it takes as
long as all clients together can make it: by thousands of tiny frames, pipelined requests, or a thousand sockets that
send at the same time. What does not fit into the share waits, and its socket is not read meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import thread_time

from tokenweir.stream.serve.limits.connections import CONNECTION
from tokenweir.stream.serve.limits.fair_queue import CLIENT

SHARE = 0.004
"""Seconds of CPU time of a turn of the event loop in which input is parsed and requests begin."""
REQUEST = 0.001
"""Seconds that a request counts as besides its parsing: routing and checks, in a task of its own."""
QUANTUM = 0.0005
"""Seconds of a client's work before the next client's, among those that wait: a request, or a hundred kilobytes of a body."""
LONG = 1 << 15
"""Size in bytes from which a message waits for its turn."""
BYTE = 5e-8
"""Seconds that a byte of a message counts as: its JSON is parsed and checked in one piece."""

Work = Callable[[], bool | None]
"""A piece of work; true if there is more of it."""


class InputTurns:
    """Scheduler of clients' input: it limits the CPU time that input takes in each turn of the event loop.

    It belongs to one event loop.

    Args:
        clock: Returns the CPU time of the thread in seconds.

    Attributes:
        total: Seconds spent on input so far.

    """

    def __init__(self, clock: Callable[[], float] = thread_time) -> None:
        self.total = 0.0
        self._clock = clock
        self._spent = 0.0  # in this turn of the event loop
        self._waiting: dict[str, deque[tuple[Work, float]]] = {}  # of each client, next one first
        self._scheduled = False
        self._long: dict[str, deque[tuple[asyncio.Future[bool], int]]] = {}  # messages of each client, next one first
        self._pause: asyncio.TimerHandle | None = None  # between two long messages

    def run(self, client: str, work: Work, cost: float = 0.0) -> None:
        """Call `work` until it returns a false value, within the share of the event loop's turn that input may take.

        It is called at once if this turn has time left and no other client waits, else in later turns. Waiting clients
        take turns.

        Args:
            client: The client whose input it is.
            work: Does one piece of the work in each call; returns True if there is more.
            cost: Seconds that each call counts as, besides the CPU time it takes.

        """
        more: bool | None = True
        while more and not self._waiting and self._spent < SHARE:
            more = self._call(work, cost)
        if more:
            self._wait(client, work, cost)

    def spend(self, seconds: float) -> None:
        """Count seconds of work on input in the present turn of the event loop."""
        self._spent += seconds
        self.total += seconds
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    async def take(self, size: int) -> None:
        """Wait until a message of `size` bytes may be parsed.

        The caller parses it at once, without awaiting anything before. Long messages are parsed one at a time, round
        robin between clients, and after each the event loop does other work for as long as it took. Short ones need not
        wait.

        Raises:
            Disconnected: The client has disconnected before its turn.

        """
        if size >= LONG:
            turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._long.setdefault(CLIENT.get(), deque()).append((turn, size))
            if self._pause is None:
                self._begin_later(0.0)  # ready tasks run first
            connection = CONNECTION.get()
            await (turn if connection is None else connection.until(turn))
        self.spend(size * BYTE)

    def _begin_later(self, seconds: float) -> None:
        self._pause = asyncio.get_running_loop().call_later(seconds, self._begin_long)

    def _begin_long(self) -> None:
        """Give the next waiting long message its turn."""
        self._pause = None
        while self._long and self._pause is None:
            client = next(iter(self._long))
            queue = self._long.pop(client)
            turn, size = queue.popleft()
            if queue:
                self._long[client] = queue  # behind the others
            if not turn.done():  # its client may have left
                turn.set_result(True)
                self._begin_later(size * BYTE)

    def _wait(self, client: str, work: Work, cost: float) -> None:
        self._waiting.setdefault(client, deque()).append((work, cost))

    def _call(self, work: Work, cost: float) -> bool | None:
        begun = self._clock()
        try:
            return work()
        finally:
            self.spend(self._clock() - begun + cost)

    def _turn(self) -> None:
        """Begin a new turn of the event loop: reset the time spent, and run waiting work within the share."""
        self._scheduled = False
        self._spent = 0.0
        while self._waiting and self._spent < SHARE:
            client = next(iter(self._waiting))
            queue, end = self._waiting[client], self._spent + QUANTUM
            while queue and self._spent < end:
                work, cost = queue.popleft()
                if self._try(work, cost):
                    queue.append((work, cost))
            del self._waiting[client]
            if queue:
                self._waiting[client] = queue  # behind the others

    def _try(self, work: Work, cost: float) -> bool | None:
        try:
            return self._call(work, cost)
        except Exception as error:  # noqa: BLE001 - told to the loop, as asyncio does with callbacks
            context = {"message": "a client's input failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            return False
