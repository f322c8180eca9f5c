"""What leads from those who produce deltas to those who read them: bounded, merging, for one reader or several.

A queue of deltas would grow with a slow reader, or send ever more, ever smaller messages. Here the deltas that nobody
has taken wait in one slot. Whoever of the readers comes first takes all of them, merged; that numbers them, and they stay
in a `ReplayBuffer` for the readers behind. A reader is a number: where it stands. It waits in a task of its own (`take`),
or has a function called whenever something new is there (`listen`) and takes it then, which costs no turn of the event
loop.

So there are two bounds. The slot holds back the producers, who therefore wait for the fastest reader and for no other.
The replay buffer drops what is old: a reader that falls behind its first item is cut off, and told so.
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

BREATH = 0.0005
"""Seconds for which producers that never wait may keep the event loop, and so the readers, waiting. After a pause a delta
goes at once."""


class Broadcast(Generic[T]):
    """Deltas from producers to readers, under asyncio and trio.

    Args:
        replay: Keeps what has been taken.
        make: Makes the items that readers get of the deltas that waited; `merge`, or what makes events of them.
        max_ahead: Bytes, as `size_of` counts them, that may wait for the fastest reader before `put` does.
        stall_timeout: Seconds that `put` waits for a reader before it cuts off those that took nothing.
        on_unwatched: Called whenever the last reader has left.

    """

    __slots__ = (
        "_audience",
        "_begun",
        "_breath_due",
        "_bytes",
        "_closed",
        "_emptied",
        "_failure",
        "_filled",
        "_furthest",
        "_had_readers",
        "_listeners",
        "_make",
        "_max_ahead",
        "_on_unwatched",
        "_replay",
        "_stall_timeout",
        "_subscriptions",
        "_waiting",
    )

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
        self._breath_due = 0.0
        self._begun = False  # whether a delta has been taken
        self._furthest = 0  # where the fastest reader stands
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
        """Make one whose readers get deltas, merged.

        Args:
            max_ahead: See the class.
            max_replay: Bytes of deltas that are kept for the readers behind.
            stall_timeout: See the class.

        """
        replay = ReplayBuffer(max_replay, merge, size_of)
        return Broadcast(replay, merge, max_ahead=max_ahead, stall_timeout=stall_timeout)

    @property
    def watched(self) -> bool:
        """Whether there is a reader."""
        return bool(self._subscriptions)

    @property
    def pending_bytes(self) -> int:
        """Bytes, as `size_of` counts them, that wait for the fastest reader."""
        return self._bytes

    @property
    def full(self) -> bool:
        """Whether `max_ahead` bytes or more are waiting, so that the producers should wait for `room`."""
        return self._bytes >= self._max_ahead

    def add(self, *deltas: Delta) -> None:
        """Add deltas at once, whether there is room or not."""
        self._waiting += deltas
        if self._filled.event is not None:  # `_tell`, written out, since this is done for every frame
            self._filled.fire()
        for listener in self._listeners:
            listener()
        if self._waiting:  # else they have been taken at once
            self._bytes += sum(map(size_of, deltas))

    def _tell(self) -> None:
        """Tell those who read that there is something new, or that nothing more comes."""
        if self._filled.event is not None:
            self._filled.fire()
        for listener in self._listeners:
            listener()

    async def room(self) -> None:
        """Wait until it is no longer `full`."""
        while self.full:
            await self._wait_for_room()

    async def put(self, delta: Delta) -> None:
        """Add a delta; waits while `max_ahead` bytes or more are waiting already."""
        await self.room()
        self.add(delta)
        if monotonic() >= self._breath_due:
            await checkpoint()
            self._breath_due = monotonic() + BREATH

    async def _wait_for_room(self) -> None:
        timeout = self._stall_timeout if self._subscriptions else math.inf
        with anyio.move_on_after(timeout) as waiting:
            await self._emptied.wait()
        if waiting.cancelled_caught:
            deadline = monotonic() - timeout
            for stalled in [each for each in self._subscriptions if each._taken_at <= deadline]:
                stalled._cut_off(f"stalled: nothing was taken for {timeout:g} s", "stalled")

    def seal(self) -> None:
        """Number what waits, so that nothing is merged into it any more."""
        if self._waiting:
            self._replay.append(self._take_waiting())

    def _take_waiting(self) -> Iterable[T]:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        self._begun = True
        if self._emptied.event is not None:
            self._emptied.fire()
        return self._make(waiting)

    def append(self, items: Iterable[T]) -> None:
        """Add items that are not made of deltas, after all that was put."""
        self.seal()
        self._replay.append(items)
        self._tell()

    def close(self, failure: Exception | None = None) -> None:
        """Say that no more comes; what is there can still be taken, and `failure` is raised to each reader after it.

        Only the first call counts.
        """
        if not self._closed:
            self._closed, self._failure = True, failure
            self._tell()
            self._audience.fire()

    def detach(self) -> None:
        """Call neither `make` nor `on_unwatched` any more, so that nobody whose methods they are is kept by this.

        It is for one that is closed and gets no more readers.
        """
        self._make, self._on_unwatched = lambda _: (), lambda: None

    def subscribe(self, start: int = 0, *, interval: float = 0.0) -> Subscription[T]:
        """Add a reader.

        Args:
            start: The number of the first item it is to get; 0 is the start of the stream.
            interval: Least seconds between two batches; what comes faster is merged. The first delta goes at once.
                `Subscription.interval` can be changed at any time.

        Raises:
            DeliveryError: The item has been dropped.
            ValueError: There is no such number yet.

        """
        self._replay.check(start)
        subscription = Subscription(self, start, interval)
        self._subscriptions.add(subscription)
        self._had_readers = True
        self._audience.fire()
        self._emptied.fire()  # who waits for room, waits no longer than this reader may now
        return subscription

    async def abandoned(self, grace: float = 0.0) -> None:
        """Wait until there was a reader and, for so many seconds, none is left; or until it is closed."""
        while not (self._had_readers or self._closed):
            await self._audience.wait()
        while not self._closed:
            with anyio.move_on_after(math.inf if self._subscriptions else grace) as waiting:
                await self._audience.wait()
            if waiting.cancelled_caught:
                return


class Subscription(Generic[T]):
    """A reader of a broadcast: an asynchronous iterator of batches, and a context that makes the reader leave.

        with broadcast.subscribe() as batches:
            async for batch in batches:
                ...

    Attributes:
        position: The number of the next item; a subscription that starts there misses nothing.
        interval: Least seconds between two batches.
        due: When the next batch may go, by `time.monotonic`.

    """

    __slots__ = ("_broadcast", "_cut", "_listener", "_taken_at", "due", "interval", "position")

    def __init__(self, broadcast: Broadcast[T], start: int, interval: float) -> None:
        self.position = start
        self.interval = interval
        self.due = -math.inf
        self._broadcast = broadcast
        self._listener: Callable[[], object] | None = None
        self._taken_at = monotonic()
        # No error itself, since one that is raised refers by its traceback to this.
        self._cut: tuple[str, DeliveryOutcome] | None = None

    async def take(self) -> list[T]:
        """Everything new, merged; waits for the first, and gives an empty list after the last.

        Raises:
            DeliveryError: This reader was cut off; `outcome` says why.
            Exception: What the producers failed with, once everything before it has been taken.

        """
        broadcast = self._broadcast
        while not self.ready:
            await broadcast._filled.wait()
            # Under asyncio a scope that is cancelled while the signal wakes this task is not delivered; the reader may
            # never wait again.
            await checkpoint_if_cancelled()
        if self.interval and (early := self.due - monotonic()) > 0 and not broadcast._closed:
            await anyio.sleep(early)
        return self.take_now()

    def listen(self, listener: Callable[[], object]) -> None:
        """Have a function called whenever there is something new, or nothing more comes, or this reader is cut off.

        It is called by who brings that, in the midst of it: it must not raise.
        """
        self._listener = listener
        if self in self._broadcast._subscriptions:
            self._broadcast._listeners += (listener,)

    @property
    def ready(self) -> bool:
        """Whether `take_now` has something to give or to raise, or `ended` is true."""
        broadcast = self._broadcast
        return (
            bool(broadcast._waiting)
            or self.position != broadcast._replay.next
            or broadcast._closed
            or self._cut is not None
        )

    @property
    def ended(self) -> bool:
        """Whether nothing more comes, so that `interval` is no reason to wait."""
        return self._broadcast._closed or self._cut is not None

    def take_now(self) -> list[T]:
        """Everything new, merged; an empty list if there is nothing. It asks for no `interval`; raises as `take`."""
        broadcast, replay = self._broadcast, self._broadcast._replay
        if self._cut is not None:
            raise DeliveryError(*self._cut)
        if self.position == replay.next and not replay.keeps and len(broadcast._subscriptions) == 1:
            items: list[T] = []
            if waiting := broadcast._waiting:  # `_take_waiting`, written out, since this is done for every frame
                broadcast._waiting, broadcast._bytes, broadcast._begun = [], 0, True
                if broadcast._emptied.event is not None:
                    broadcast._emptied.fire()
                items += broadcast._make(waiting)
                replay.first = replay.next = replay.next + len(items)  # nobody else can ask for them
        else:
            broadcast.seal()
            try:
                items = replay.since(self.position)
            except DeliveryError as error:
                self._cut_off(str(error), error.outcome)
                raise
        if not items and broadcast._closed and broadcast._failure is not None:
            raise broadcast._failure
        self.position = replay.next
        self._taken_at = monotonic()
        if broadcast._begun:
            self.due = self._taken_at + self.interval
        broadcast._furthest = max(broadcast._furthest, self.position)
        if replay.bytes:
            replay.trim(broadcast._furthest)
        return items

    def close(self) -> None:
        """Leave; what others read is not touched."""
        self._cut_off("this subscription is closed", "closed")

    def _cut_off(self, why: str, outcome: DeliveryOutcome) -> None:
        self._cut = self._cut or (why, outcome)
        if self in self._broadcast._subscriptions:
            self._broadcast._subscriptions.discard(self)
            self._broadcast._audience.fire()
            self._broadcast._filled.fire()  # its own reader, if that waits in another task
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
    """Wakes those who wait at the moment; costs nothing while nobody does.

    Attributes:
        event: What they wait for, if anybody does.

    """

    __slots__ = ("event",)

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
