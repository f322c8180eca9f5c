"""An answer that another task can end, so that what the decoder holds still comes, and the usage.

Cancelling the task that reads would end it too, but throws away what is held and what nobody has read yet.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Sequence
from time import monotonic
from typing import Any, Self

from anyio import CancelScope
from anyio.lowlevel import checkpoint, current_token

from tokenweir.stream.events import Delta
from tokenweir.stream.pipeline.stages import Owned, Stage

BREATH = 0.0005
"""Seconds for which a source that never waits may keep the event loop to itself."""


class Cancellable(AsyncIterator[Any]):
    """A source that can be cancelled: it is closed at once, and gives its last items in place of the rest.

    Its reader is interrupted only while it waits for the source, so a stage may `yield` what it gets. A source that gives
    items without ever waiting lets the other tasks run every half a millisecond all the same.

    Args:
        source: What to read. It is owned and closed here.
        last: What comes if it is cancelled.

    """

    def __init__(self, source: AsyncIterable[Any], last: Iterable[Any]) -> None:
        self._source = Owned(source)
        self._last = iter(last)
        self._cancelled = False
        self._waiting: asyncio.Task[Any] | CancelScope | None = None
        self._interrupted = False  # the task, by `cancel`
        self._cancelling = 0  # how often others had cancelled it before
        self._breath_due = math.inf

    def cancel(self) -> None:
        """End it, at any time and from any task of its event loop; nothing happens if it has ended."""
        self._cancelled = True
        waiting = self._waiting
        if isinstance(waiting, CancelScope):
            waiting.cancel()
        elif waiting is not None and not self._interrupted and waiting is not asyncio.current_task():
            self._interrupted, self._cancelling = True, waiting.cancelling()
            waiting.cancel()

    async def aclose(self) -> None:
        """Close the source, once."""
        await self._source.aclose()

    def __aiter__(self) -> Self:
        self._items = aiter(self._source)
        self._asyncio = isinstance(current_token().native_token, asyncio.AbstractEventLoop)
        return self

    async def __anext__(self) -> Any:
        if not self._cancelled:
            if monotonic() >= self._breath_due:
                await checkpoint()
                self._breath_due = math.inf
            turn = _Turn(anext(self._items))
            try:
                return await (self._in_task(turn) if self._asyncio else self._in_scope(turn))
            except _Interrupted:
                pass
            finally:
                self._waiting = None
                if turn.suspended:
                    self._breath_due = math.inf
                elif self._breath_due == math.inf:
                    self._breath_due = monotonic() + BREATH
        await self._source.aclose()
        for item in self._last:
            return item
        raise StopAsyncIteration

    async def _in_task(self, turn: _Turn) -> Any:
        """Wait under asyncio. A cancel scope for each item would cost more than all the rest of it."""
        self._waiting = task = asyncio.current_task()
        assert task is not None
        try:
            item = await turn
        except BaseException as error:
            if self._take_back(task) and isinstance(error, asyncio.CancelledError):
                raise _Interrupted from None
            raise
        self._take_back(task)
        return item

    def _take_back(self, task: asyncio.Task[Any]) -> bool:
        """Undo the cancellation of `cancel`, if there was one; whether nobody else has cancelled the task since."""
        if not self._interrupted:
            return False
        self._interrupted = False
        return task.uncancel() <= self._cancelling

    async def _in_scope(self, turn: _Turn) -> Any:
        """Wait under trio, whose cancel scopes are its own."""
        with CancelScope() as self._waiting:
            return await turn
        raise _Interrupted


class _Interrupted(Exception):
    """The wait was cancelled by `Cancellable.cancel`, and by nobody else."""


class _Turn:
    """Awaits, and knows whether it had to wait.

    Attributes:
        suspended: Whether other tasks could run meanwhile.

    """

    __slots__ = ("_awaitable", "suspended")

    def __init__(self, awaitable: Any) -> None:
        self._awaitable = awaitable
        self.suspended = False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._awaitable.__await__()
        step, argument = steps.send, None
        while True:
            try:
                wanted = step(argument)
            except StopIteration as end:
                return end.value
            self.suspended = True
            try:
                argument = yield wanted
                step = steps.send
            except BaseException as error:  # noqa: BLE001 - it is for those who wait
                step, argument = steps.throw, error


class Deltas(Stage[Delta]):
    """The deltas of `chat()`: an async generator, which any task of its event loop can cancel.

    Args:
        items: The deltas.
        sources: What the engine gives for them.

    """

    def __init__(self, items: AsyncGenerator[Delta, None], sources: Sequence[Cancellable]) -> None:
        super().__init__(items)
        self._cancellable = sources

    def cancel(self) -> None:
        """Stop the engine; what was held still comes, and for each answer a `Finish`, reason "cancelled", with its usage.

        An answer that has ended by itself stays as it is.
        """
        for source in self._cancellable:
            source.cancel()
