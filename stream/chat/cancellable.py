"""Answers that another task can cancel without losing held text or the usage.

Cancelling the reading task would end an answer too, but would drop the text that the decoder holds and unread deltas.
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

from tokenweir.stream.chat.broadcast import YIELD_INTERVAL
from tokenweir.stream.chat.stages import Owned, Stage, read_through
from tokenweir.stream.decode.transforms import StageRunner
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.prompt_scores import EchoedPrompt


class Cancellable(AsyncIterator[Any]):
    """Async iterator over a source that `cancel` closes at once; it then yields the items of `last` in place of the rest.

    A cancellation interrupts the reader only while it waits for the source, so a stage may `yield` the items. A source
    that never waits still lets other tasks run every `YIELD_INTERVAL`. The source is owned and closed here.

    Args:
        source: The async iterable to read.
        last: The items to yield after a cancellation.
        runs_ahead: Whether the source produces items while it is not read; see `Engine`.

    """

    def __init__(self, source: AsyncIterable[Any], last: Iterable[Any], *, runs_ahead: bool = False) -> None:
        self.runs_ahead = runs_ahead
        self._source = Owned(source)
        self._last = iter(last)
        self._cancelled = False
        self._waiting: asyncio.Task[Any] | CancelScope | None = None
        self._interrupted = False  # the task, by `cancel`
        self._cancelling = 0  # how often others had cancelled it before
        self._yield_due = math.inf
        self._pause: asyncio.Future[None] | None = None

    def cancel(self) -> None:
        """Cancel the source, from any task of its event loop; a no-op after its end."""
        self._cancelled = True
        waiting = self._waiting
        if isinstance(waiting, CancelScope):
            waiting.cancel()
        elif waiting is not None and not self._interrupted and waiting is not asyncio.current_task():
            self._interrupted, self._cancelling = True, waiting.cancelling()
            waiting.cancel()

    def pause(self, until: asyncio.Future[None]) -> None:
        """Suspend the reader at the source's next wait until a future is done, so that it wakes once for several items.

        Call it only for a source that runs ahead, under asyncio. Items that are ready are yielded at once.
        """
        self._pause = until

    async def aclose(self) -> None:
        """Close the source; a no-op if it is closed already."""
        await self._source.aclose()

    def __aiter__(self) -> Self:
        self._items = aiter(self._source)
        loop = current_token().native_token
        self._loop = loop if isinstance(loop, asyncio.AbstractEventLoop) else None
        return self

    @coroutine  # an `async def` in between would add a frame to every wait
    def __anext__(self) -> Generator[Any, Any, Any]:
        if self._yield_due != math.inf and monotonic() >= self._yield_due and not self._cancelled:
            self._yield_due = math.inf
            yield from checkpoint().__await__()
        if not self._cancelled:
            try:
                if self._loop is None:
                    with CancelScope() as self._waiting:  # noqa: ASYNC100 - trio's scopes are its own
                        return (yield from self._turn())
                else:
                    # Under asyncio a cancel scope an item would cost more than all other work on it.
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
        """Await the next item of the source; if no other task could run meanwhile, set the time at which one must."""
        steps = anext(self._items).__await__()
        step, argument = steps.send, None
        suspended = False
        try:
            while True:
                try:
                    wanted = step(argument)
                except StopIteration as end:
                    if suspended:
                        self._yield_due = math.inf
                    elif self._yield_due == math.inf:
                        self._yield_due = monotonic() + YIELD_INTERVAL
                    return end.value
                suspended = True
                try:
                    if self._pause is None or wanted is None:  # None only asks for a turn of the loop
                        argument = yield wanted
                    else:
                        argument = yield from self._wait_paused(wanted)
                    step = steps.send
                except BaseException as error:  # noqa: BLE001 - it goes to the awaiting code
                    step, argument = steps.throw, error
        finally:
            argument = None  # breaks the cycle of an error, its traceback and this frame

    def _wait_paused(self, wanted: asyncio.Future[Any]) -> Generator[Any, Any, Any]:
        """Await the future of `pause`, then `wanted`, the future that the source waits for, unless it is done by then.

        A future that is yielded to a task has its flag of a wait set until the task has seen it. Other tasks may yield the same
        future meanwhile, which clears the flag, so it is set only at the moment of the `yield`.
        """
        pause, self._pause = self._pause, None
        assert pause is not None
        wanted._asyncio_future_blocking = False
        try:
            yield from pause
        except asyncio.CancelledError:
            if not wanted.cancel():  # as a task does with the future it waits for
                raise
        if wanted.done():
            return None
        wanted._asyncio_future_blocking = True
        return (yield wanted)

    def _take_back(self, task: asyncio.Task[Any]) -> bool:
        """Undo the cancellation of a task by `cancel`, if there was one.

        Returns:
            True if it was undone and nobody else has cancelled the task meanwhile, so that the task may go on; else False.

        """
        if not self._interrupted:
            return False
        self._interrupted = False
        return task.uncancel() <= self._cancelling


class Deltas(Stage[Delta]):
    """The deltas of `chat()`: an async generator that any task of its event loop can cancel.

    To decode several items of the engine in one call, read `source` instead and feed the items to `runner`.

    Args:
        source: The items to decode. It is owned and closed here.
        runner: Decodes items to deltas.
        engines: The engine's streams, which `cancel` cancels: `source` itself, or the streams that `source` reads.
        prompt_ids: The ids of the prompt that the engine got.

    Attributes:
        source: The argument, as an `Owned`.
        runner: The argument.
        prompt_ids: The argument.
        conversation: The digest of the prompt's conversation, for `PromptCache.forget`; None without a cache.
        echo: The prompt as the answer repeats it; None if it does not.

    """

    def __init__(
        self,
        source: AsyncIterable[Any],
        runner: StageRunner[Delta],
        engines: Sequence[Cancellable],
        prompt_ids: Sequence[int],
    ) -> None:
        self.source = Owned(source)
        self.runner = runner
        self.prompt_ids = prompt_ids
        self.conversation: int | None = None
        self.echo: EchoedPrompt | None = None
        super().__init__(read_through(self.source, runner), self.source)
        self._cancellable = engines

    @property
    def runs_ahead(self) -> bool:
        """Whether `pause` may be called: there is one engine, and it runs ahead."""
        return len(self._cancellable) == 1 and self._cancellable[0].runs_ahead

    def pause(self, until: asyncio.Future[None]) -> None:
        """Suspend the reader at the engine's next wait until a future is done; see `Cancellable.pause`."""
        self._cancellable[0].pause(until)

    def cancel(self) -> None:
        """Stop the engine. Held text still comes, then a `Finish` with reason "cancelled" and the usage for each answer.

        Answers that have ended already are not changed.
        """
        for source in self._cancellable:
            source.cancel()
