"""An answer that another task can end, so that what the decoder holds still comes, and the usage.

Cancelling the task that reads would end it too, but throws away what is held and what nobody has read yet.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterable, AsyncIterator, Generator, Iterable, Sequence
from time import monotonic
from types import coroutine
from typing import Any, Self

from anyio import CancelScope
from anyio.lowlevel import checkpoint, current_token

from tokenweir.stream.chat.stages import Owned, Stage, read_through
from tokenweir.stream.decode.transforms import Driven
from tokenweir.stream.events.deltas import Delta

BREATH = 0.0005
"""Seconds for which a source that never waits may keep the event loop to itself."""


class Cancellable(AsyncIterator[Any]):
    """A source that can be cancelled: it is closed at once, and gives its last items in place of the rest.

    Its reader is interrupted only while it waits for the source, so a stage may `yield` what it gets. A source that gives
    items without ever waiting lets the other tasks run every half a millisecond all the same.

    Args:
        source: What to read. It is owned and closed here.
        last: What comes if it is cancelled.
        runs_ahead: Whether the source goes on while it is not asked; see `Engine`.

    Attributes:
        runs_ahead: As given.

    """

    __slots__ = (
        "_breath_due",
        "_cancelled",
        "_cancelling",
        "_interrupted",
        "_items",
        "_last",
        "_loop",
        "_pause",
        "_source",
        "_waiting",
        "runs_ahead",
    )

    def __init__(self, source: AsyncIterable[Any], last: Iterable[Any], *, runs_ahead: bool = False) -> None:
        self.runs_ahead = runs_ahead
        self._source = Owned(source)
        self._last = iter(last)
        self._cancelled = False
        self._waiting: asyncio.Task[Any] | CancelScope | None = None
        self._interrupted = False  # the task, by `cancel`
        self._cancelling = 0  # how often others had cancelled it before
        self._breath_due = math.inf
        self._pause: asyncio.Future[None] | None = None

    def cancel(self) -> None:
        """End it, at any time and from any task of its event loop; nothing happens if it has ended."""
        self._cancelled = True
        waiting = self._waiting
        if isinstance(waiting, CancelScope):
            waiting.cancel()
        elif waiting is not None and not self._interrupted and waiting is not asyncio.current_task():
            self._interrupted, self._cancelling = True, waiting.cancelling()
            waiting.cancel()

    def pause(self, until: asyncio.Future[None]) -> None:
        """Leave the source's next wait alone until a future is done: its reader is woken once for all that comes meanwhile.

        It is for a source that runs ahead, under asyncio; what has come already is given at once.
        """
        self._pause = until

    async def aclose(self) -> None:
        """Close the source, once."""
        await self._source.aclose()

    def __aiter__(self) -> Self:
        self._items = aiter(self._source)
        loop = current_token().native_token
        self._loop = loop if isinstance(loop, asyncio.AbstractEventLoop) else None
        return self

    @coroutine  # every `async def` between would add a frame to every wait
    def __anext__(self) -> Generator[Any, Any, Any]:
        if self._breath_due != math.inf and monotonic() >= self._breath_due and not self._cancelled:
            self._breath_due = math.inf
            yield from checkpoint().__await__()
        if not self._cancelled:
            try:
                if self._loop is None:
                    with CancelScope() as self._waiting:  # noqa: ASYNC100 - trio's scopes are its own
                        return (yield from self._turn())
                else:
                    # Under asyncio a cancel scope for each item would cost more than all the rest of it.
                    self._waiting = task = asyncio.current_task(self._loop)
                    assert task is not None
                    try:
                        item = yield from self._turn()
                    except BaseException as error:
                        if not (self._take_back(task) and isinstance(error, asyncio.CancelledError)):
                            raise
                    else:
                        if self._interrupted:
                            self._take_back(task)
                        return item
            finally:
                self._waiting = None
        yield from self._source.aclose().__await__()
        for item in self._last:
            return item
        raise StopAsyncIteration

    def _turn(self) -> Generator[Any, Any, Any]:
        """Await the next item, and see whether other tasks could run meanwhile."""
        steps = anext(self._items).__await__()
        step, argument = steps.send, None
        suspended = False
        try:
            while True:
                try:
                    wanted = step(argument)
                except StopIteration as end:
                    if suspended:
                        self._breath_due = math.inf
                    elif self._breath_due == math.inf:
                        self._breath_due = monotonic() + BREATH
                    return end.value
                suspended = True
                try:
                    if self._pause is None or wanted is None:  # which asks for a turn of the loop only
                        argument = yield wanted
                    else:
                        argument = yield from self._wait_paused(wanted)
                    step = steps.send
                except BaseException as error:  # noqa: BLE001 - it is for those who wait
                    step, argument = steps.throw, error
        finally:
            argument = None  # an error's traceback has this frame, which else would have the error

    def _wait_paused(self, wanted: asyncio.Future[Any]) -> Generator[Any, Any, Any]:
        """Await the pause, and then what the source waits for, unless that has come."""
        pause, self._pause = self._pause, None
        assert pause is not None
        try:
            yield from pause
        except asyncio.CancelledError:
            if not wanted.cancel():  # as a task does with what it waits for
                raise
        return None if wanted.done() else (yield wanted)

    def _take_back(self, task: asyncio.Task[Any]) -> bool:
        """Undo the cancellation of `cancel`, if there was one; whether nobody else has cancelled the task since."""
        if not self._interrupted:
            return False
        self._interrupted = False
        return task.uncancel() <= self._cancelling


class Deltas(Stage[Delta]):
    """The deltas of `chat()`: an async generator, which any task of its event loop can cancel.

    Who wants several items of the engine decoded in one go reads `source` in its place, and gives them to `part`.

    Args:
        source: What the deltas are made of. It is owned and closed here.
        part: What makes them.
        engines: What the engine gives: `source`, or where that comes from.
        prompt_ids: What the engine was given.

    Attributes:
        source: As given.
        part: As given.
        prompt_ids: As given.

    """

    def __init__(
        self, source: AsyncIterable[Any], part: Driven[Delta], engines: Sequence[Cancellable], prompt_ids: Sequence[int]
    ) -> None:
        self.source = Owned(source)
        self.part = part
        self.prompt_ids = prompt_ids
        super().__init__(read_through(self.source, part), self.source)
        self._cancellable = engines

    @property
    def runs_ahead(self) -> bool:
        """Whether it is of one engine, which runs ahead, so that `pause` may be called."""
        return len(self._cancellable) == 1 and self._cancellable[0].runs_ahead

    def pause(self, until: asyncio.Future[None]) -> None:
        """Ask for no more before a future is done, but for what is there already."""
        self._cancellable[0].pause(until)

    def cancel(self) -> None:
        """Stop the engine; what was held still comes, and for each answer a `Finish`, reason "cancelled", with its usage.

        An answer that has ended by itself stays as it is.
        """
        for source in self._cancellable:
            source.cancel()
