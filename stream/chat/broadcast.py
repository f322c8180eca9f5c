"""A bounded hand-off of deltas from producers to one or several readers, which merges deltas that wait.

A queue of deltas would grow with a slow reader, or send ever more, ever smaller messages. Here waiting deltas share one
slot. The first reader to come takes all of them, merged and numbered; they stay in a `ReplayBuffer` for slower readers. A
reader is a position in this sequence. It waits in its own task (`take`), or registers a callback (`listen`) and takes new
items inside it, which costs no turn of the event loop.

There are two bounds. The slot applies backpressure: producers wait for the fastest reader only. The replay buffer drops
old items: a reader that falls behind its first item is cut off with an error.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable
from time import monotonic
from types import TracebackType
from typing import Generic, TypeVar

import anyio
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled

from tokenweir.encode.errors import DeliveryError, DeliveryOutcome
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.merge import merge, size_of

T = TypeVar("T")

YIELD_INTERVAL = 0.0005
"""Seconds after which a task that never waits yields to the event loop, so that readers and other tasks run."""


class Broadcast(Generic[T]):
    """Buffer that passes deltas from producers to one or several readers, under asyncio and trio.

    Args:
        replay: Keeps items that have been taken, for slower readers.
        make: Converts the waiting deltas into items for readers: `merge`, or a function that makes events.
        max_ahead: High-water mark in bytes, as `size_of` counts them: from it on, `put` waits.
        stall_timeout: Seconds that `put` waits before it cuts off readers that took nothing meanwhile; each of these gets
            a `DeliveryError`.
        on_unwatched: Called when the last reader has left.

    """

    def __init__(
        self,
        replay: ReplayBuffer[T],
        make: Callable[[list[Delta]], Iterable[T]],
        *,
        max_ahead: int,
        stall_timeout: float = math.inf,
        on_unwatched: Callable[[], object] = lambda: None,
    ) -> None:
        self._replay = replay
        self._make = make
        self._max_ahead = max_ahead
        self._stall_timeout = stall_timeout
        self._on_unwatched = on_unwatched
        self._waiting: list[Delta] = []
        self._bytes = 0
        self._yield_due = 0.0
        self._begun = False  # whether a delta has been taken
        self._subscriptions: set[Subscription[T]] = set()
        self._listeners: tuple[Callable[[], object], ...] = ()
        self._had_readers = False  # whether there was a reader, even one that has left
        self._closed = False
        self._failure: Exception | None = None
        self._filled = _Signal()
        self._emptied = _Signal()
        self._audience = _Signal()

    @classmethod
    def of_deltas(cls, *, max_ahead: int, max_replay: int = 0, stall_timeout: float = math.inf) -> Broadcast[Delta]:
        """Create a broadcast whose items are merged deltas.

        Args:
            max_ahead: Bytes of deltas that no reader has taken, from which on `put` waits.
            max_replay: Bytes of deltas that are kept for slower readers. A reader that needs a dropped one is cut off.
            stall_timeout: Seconds that `put` waits before it cuts off readers that took nothing meanwhile.

        """
        replay = ReplayBuffer(max_replay, merge, size_of)
        return Broadcast(replay, merge, max_ahead=max_ahead, stall_timeout=stall_timeout)

    @property
    def watched(self) -> bool:
        """Whether at least one reader is subscribed."""
        return bool(self._subscriptions)

    @property
    def pending_bytes(self) -> int:
        """Bytes of the deltas that no reader has taken yet, as `size_of` counts them."""
        return self._bytes

    @property
    def full(self) -> bool:
        """Whether `max_ahead` bytes or more wait, so that producers should await `room`."""
        return self._bytes >= self._max_ahead

    def add(self, *deltas: Delta) -> None:
        """Add deltas and wake the readers, without waiting for room."""
        self._waiting += deltas
        if self._filled.event is not None:  # `_notify` inlined: this runs for every frame
            self._filled.fire()
        for listener in self._listeners:
            listener()
        if self._waiting:  # else a listener has taken them
            self._bytes += sum(map(size_of, deltas))

    def _notify(self) -> None:
        """Wake the readers."""
        if self._filled.event is not None:
            self._filled.fire()
        for listener in self._listeners:
            listener()

    async def room(self) -> None:
        """Wait until the broadcast is no longer `full`; cut off stalled readers after `stall_timeout`."""
        while self.full:
            await self._wait_for_room()

    async def put(self, delta: Delta) -> None:
        """Add a delta; waits while the broadcast is `full`."""
        await self.room()
        self.add(delta)
        if monotonic() >= self._yield_due:
            await checkpoint()
            self._yield_due = monotonic() + YIELD_INTERVAL

    async def _wait_for_room(self) -> None:
        timeout = self._stall_timeout if self._subscriptions else math.inf
        with anyio.move_on_after(timeout) as waiting:
            await self._emptied.wait()
        if waiting.cancelled_caught:
            deadline = monotonic() - timeout
            for stalled in [each for each in self._subscriptions if each._taken_at <= deadline]:
                stalled._cut_off(f"stalled: nothing was taken for {timeout:g} s", "stalled")

    def seal(self) -> None:
        """Convert the waiting deltas into numbered items, so that later deltas are not merged with them."""
        if self._waiting:
            self._replay.append(self._take_waiting())

    def _take_waiting(self) -> Iterable[T]:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        self._begun = True
        if self._emptied.event is not None:
            self._emptied.fire()
        return self._make(waiting)

    def _take_from(self, position: int) -> list[T]:
        """Return all items from number `position` on, those made of the waiting deltas included.

        Raise `DeliveryError` if item `position` has been dropped.
        """
        replay = self._replay
        if position != replay.next or replay.keeps:
            self.seal()
            items = replay.since(position)
        else:  # fast path: the items are dropped as soon as they are taken, for every reader
            items = []
            if waiting := self._waiting:  # `_take_waiting` inlined: this runs for every frame
                self._waiting, self._bytes, self._begun = [], 0, True
                if self._emptied.event is not None:
                    self._emptied.fire()
                items += self._make(waiting)
                replay.first = replay.next = replay.next + len(items)
        if replay.bytes:
            replay.trim(replay.next)
        return items

    def append(self, items: Iterable[T]) -> None:
        """Add items that are not made from deltas, after all deltas that were added before, and wake the readers."""
        self.seal()
        self._replay.append(items)
        self._notify()

    def close(self, failure: Exception | None = None) -> None:
        """End the stream. Readers still take the rest; then `failure`, if any, is raised in each.

        Calls after the first are no-ops.
        """
        if not self._closed:
            self._closed, self._failure = True, failure
            self._notify()
            self._audience.fire()

    def detach(self) -> None:
        """Drop the callbacks `make` and `on_unwatched`, so that their owners can be freed.

        Call it only for a closed broadcast that gets no more readers.
        """
        self._make, self._on_unwatched = lambda _: (), lambda: None

    def subscribe(self, start: int = 0, *, interval: float = 0.0) -> Subscription[T]:
        """Add a reader and return its subscription.

        Args:
            start: The number of the first item to read; 0 is the start of the stream.
            interval: Least seconds between two batches; faster deltas are merged. The first batch is not delayed.
                `Subscription.interval` can be changed at any time.

        Raises:
            DeliveryError: Item `start` has been dropped.
            ValueError: `start` is above the number of the next item.

        """
        self._replay.check(start)
        subscription = Subscription(self, start, interval)
        self._subscriptions.add(subscription)
        self._had_readers = True
        self._audience.fire()
        self._emptied.fire()  # `put` waits again, with the stall timeout of a watched stream
        return subscription

    async def abandoned(self, grace: float = 0.0) -> None:
        """Wait until the stream is closed or has had no reader for `grace` seconds.

        The grace period does not run before the first reader has come.
        """
        while not (self._had_readers or self._closed):
            await self._audience.wait()
        while not self._closed:
            with anyio.move_on_after(math.inf if self._subscriptions else grace) as waiting:
                await self._audience.wait()
            if waiting.cancelled_caught:
                return


class Subscription(Generic[T]):
    """A reader of a broadcast: an async iterator of batches, and a context manager that ends the subscription.

        with broadcast.subscribe() as batches:
            async for batch in batches:
                ...

    Attributes:
        position: The number of the next item. A subscription that starts there continues without a gap.
        interval: Least seconds between two batches.
        due: The earliest time of the next batch, by `time.monotonic`; minus infinity before the first.

    """

    def __init__(self, broadcast: Broadcast[T], start: int, interval: float) -> None:
        self.position = start
        self.interval = interval
        self.due = -math.inf
        self._broadcast = broadcast
        self._listener: Callable[[], object] | None = None
        self._taken_at = monotonic()
        # Not an exception: its traceback would refer to this object and form a cycle.
        self._cut: tuple[str, DeliveryOutcome] | None = None

    async def take(self) -> list[T]:
        """Wait for new items, and for `interval` since the last batch; return all, merged. Return an empty list at the end.

        Raises:
            DeliveryError: This reader was cut off; `outcome` says why.
            Exception: The failure of the producers, after everything before it has been taken.

        """
        broadcast = self._broadcast
        while not self.ready:
            await broadcast._filled.wait()
            # Under asyncio a cancellation that arrives while the signal wakes this task is not delivered, and the reader
            # may never wait again.
            await checkpoint_if_cancelled()
        if self.interval and (early := self.due - monotonic()) > 0 and not broadcast._closed:
            await anyio.sleep(early)
        return self.take_now()

    def listen(self, listener: Callable[[], object]) -> None:
        """Register a callback for new items, the end of the stream, and the cut-off of this reader.

        It is called synchronously by the producer and must not raise.
        """
        self._listener = listener
        if self in self._broadcast._subscriptions:
            self._broadcast._listeners += (listener,)

    @property
    def ready(self) -> bool:
        """Whether `take_now` would return items or raise, or `ended` is true."""
        broadcast = self._broadcast
        return (
            bool(broadcast._waiting)
            or self.position != broadcast._replay.next
            or broadcast._closed
            or self._cut is not None
        )

    @property
    def ended(self) -> bool:
        """Whether no more items are added: the stream was closed, or this reader was closed or cut off.

        Unread items can still be taken after the stream was closed, but not after this reader was closed or cut off.
        """
        return self._broadcast._closed or self._cut is not None

    def take_now(self) -> list[T]:
        """Return all new items, merged, without waiting for any or for `interval`; an empty list if there are no new items.

        Raises the errors of `take`.
        """
        broadcast = self._broadcast
        if self._cut is not None:
            raise DeliveryError(*self._cut)
        try:
            items = broadcast._take_from(self.position)
        except DeliveryError as error:
            self._cut_off(str(error), error.outcome)
            raise
        if not items and broadcast._closed and broadcast._failure is not None:
            raise broadcast._failure
        self.position = broadcast._replay.next
        self._taken_at = monotonic()
        if broadcast._begun:
            self.due = self._taken_at + self.interval
        return items

    def close(self) -> None:
        """End this subscription; other readers are not affected."""
        self._cut_off("this subscription is closed", "closed")

    def _cut_off(self, why: str, outcome: DeliveryOutcome) -> None:
        self._cut = self._cut or (why, outcome)
        if self in self._broadcast._subscriptions:
            self._broadcast._subscriptions.discard(self)
            self._broadcast._audience.fire()
            self._broadcast._filled.fire()  # this reader's own task, if it waits
            if self._listener is not None:
                others = (each for each in self._broadcast._listeners if each is not self._listener)
                self._broadcast._listeners = tuple(others)
                self._listener()
                self._listener = None
            if not self._broadcast._subscriptions:
                self._broadcast._on_unwatched()

    def __enter__(self) -> Subscription[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> AsyncIterator[list[T]]:
        return self

    async def __anext__(self) -> list[T]:
        if items := await self.take():
            return items
        raise StopAsyncIteration


class _Signal:
    """Condition variable without a lock: `fire` wakes all waiting tasks, and is cheap if no task waits."""

    def __init__(self) -> None:
        self.event: anyio.Event | None = None

    async def wait(self) -> None:
        if self.event is None:
            self.event = anyio.Event()
        await self.event.wait()

    def fire(self) -> None:
        event, self.event = self.event, None
        if event is not None:
            event.set()
