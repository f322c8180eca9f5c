"""Answers in flight: one task each, any number of readers, stopped when the last reader leaves.

The server's tasks are asyncio's own. An engine may swallow its cancellation, and the cancel scopes of a task group would
then cancel it again and again and never end. Here it is cancelled once. If it keeps running, it is abandoned: its
answer ends without it, with a log message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Generic, TypeVar

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Broadcast, Subscription
from tokenweir.stream.chat.cancellable import Deltas
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.chat.stages import close_source
from tokenweir.stream.events.deltas import Delta, Finish, FinishReason, Usage
from tokenweir.stream.events.prompt_scores import EchoedPrompt
from tokenweir.stream.serve.answers.frame_buffer import FrameBuffer
from tokenweir.stream.serve.answers.pacer import Pacer
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.monitoring.failures import explain, server_failed
from tokenweir.stream.serve.monitoring.metrics import Meter
from tokenweir.stream.serve.wire.shared.errors import RequestError

logger = logging.getLogger("tokenweir.serve")

T = TypeVar("T")


class Generation(Generic[T]):
    """One answer in progress: the engine's deltas, converted to items and broadcast to any number of readers.

    Args:
        answer_id: The answer's id, also for log messages.
        answer: Async context manager that yields the deltas, like `chat()`; leaving it stops the engine.
        replay: Buffer of items that have been read, for readers that come later.
        make: Converts waiting deltas to items for readers.
        limits: Limits on waiting output, and the time after which an engine that does not stop is abandoned.
        pacer: Sets the interval between batches of tokens.
        meter: Counts the answer's tokens.
        ending: Makes the last items of an answer without `Finish` from the failure, or from None if it was cancelled.
            Without it the failure is raised in the readers.
        on_end: Called once, with the generation, when the engine is stopped or abandoned.
        grace: Seconds without a reader after which the answer is stopped and dropped.

    Attributes:
        started: Future that is done once the prompt is accepted; it has the exception if the prompt is refused.
        ended: Event that is set once the engine is stopped or abandoned.
        usage: Token counts of a failed answer; None if it has not failed or has no counts.
        stopping: Whether the engine was told to stop before its end.
        dropped: Whether the answer cannot be read any more.

    """

    def __init__(
        self,
        answer_id: str,
        answer: AbstractAsyncContextManager[Deltas],
        *,
        replay: ReplayBuffer[T],
        make: Callable[[list[Delta]], Iterable[T]],
        limits: Limits,
        pacer: Pacer,
        meter: Meter,
        ending: Callable[[RequestError | None], Iterable[T]] | None = None,
        on_end: Callable[[Generation[T]], object] = lambda _: None,
        grace: float = 0.0,
    ) -> None:
        self.id = answer_id
        self.ended = asyncio.Event()
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.usage: Usage | None = None
        self.stopping = self.dropped = False
        self._answer = answer
        self._limits = limits
        self._pacer = pacer
        self._ending = ending
        self._on_end = on_end
        self._grace = grace
        self._meter = meter
        self._deltas: Deltas | None = None
        self._batch: FrameBuffer | None = None
        self._timer: asyncio.TimerHandle | None = None  # until it is abandoned, or dropped for lack of readers
        self._task: asyncio.Task[None] | None = None
        self._broadcast = Broadcast(replay, make, max_ahead=limits.max_pending_bytes, on_unwatched=self._unwatched)

    @property
    def watched(self) -> bool:
        """Whether the answer has a reader."""
        return self._broadcast.watched

    @property
    def echo(self) -> EchoedPrompt | None:
        """The prompt as the answer repeats it; None if it does not, or until the prompt is accepted."""
        return None if self._deltas is None else self._deltas.echo

    @property
    def prompt_ids(self) -> Sequence[int]:
        """The ids of the prompt; empty until the prompt is accepted."""
        return () if self._deltas is None else self._deltas.prompt_ids

    @property
    def conversation(self) -> int | None:
        """The key of the conversation in the prompt cache; None before the prompt is accepted or if it is not cached."""
        return None if self._deltas is None else self._deltas.conversation

    @property
    def pending_bytes(self) -> int:
        """Bytes of the deltas that no reader has taken yet."""
        return self._broadcast.pending_bytes

    def start(self, first: Iterable[T] = ()) -> None:
        """Start generating; `first` are the first items for readers, before those of the engine.

        A failure goes to the readers, and to `started` if the prompt was not accepted.
        """
        self._broadcast.append(first)
        self._task = asyncio.get_running_loop().create_task(self._run())
        # A task that is cancelled before its first step never runs.
        self._task.add_done_callback(lambda _: self._end(None))

    def subscribe(self, start: int = 0) -> Subscription[T]:
        """Return a new reader of the items from number `start` on.

        It ends a grace period that is running. Raise `DeliveryError` if that item has been dropped, and `ValueError` if
        `start` is above the number of the next item.
        """
        subscription = self._broadcast.subscribe(start)
        if self._timer is not None and not self._is_closing:
            self._timer.cancel()
        return subscription

    def cancel(self) -> None:
        """Stop the engine; readers still get the buffered text, the usage and the last items."""
        if self.ended.is_set() or self.stopping:
            return
        self._stop()
        if self._deltas is None:
            assert self._task is not None
            self._task.cancel()
        else:
            self._deltas.cancel()
            self._broadcast.seal()  # makes room, so that the engine can close before a slow reader reads

    def drop(self) -> None:
        """Stop the engine and end all readers with an error; the answer cannot be read any more."""
        self.dropped = True
        self._broadcast.close(DeliveryError("closed: the response was closed before its end", "closed"))
        if not self.ended.is_set():
            if not self.stopping:
                self._stop()
            if self._task is not None:
                self._task.cancel()
        self._detach()

    async def wait_ended(self, seconds: float) -> None:
        """Wait until the engine has stopped, for `seconds` at most, then abandon it.

        An abandoned engine may go on, but its answer ends.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        self._abandon()

    def when_stopped(self, call: Callable[[], object]) -> None:
        """Call a function when the engine no longer runs.

        Call this after the answer has ended: the function is called at once, or for an abandoned engine when its task
        ends.
        """
        task = self._task
        if task is not None and task in _abandoned:
            task.add_done_callback(lambda _: call())
        else:
            call()

    @property
    def _is_closing(self) -> bool:
        """Whether the engine was told to stop and has not stopped yet; the timer is then that of `_abandon`."""
        return self.stopping and not self.ended.is_set()

    def _stop(self) -> None:
        self.stopping = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._limits.abandon_timeout, self._abandon)

    def _unwatched(self) -> None:
        """React to the leaving of the last reader: start the grace period, or drop the answer if it has no grace."""
        if self._grace == 0 or self._broadcast.full:
            self.drop()
        elif not self._is_closing:
            self._begin_grace()

    def _begin_grace(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._grace, self._expire)

    def _expire(self) -> None:
        if not self.watched:
            self.drop()

    def _abandon(self) -> None:
        if not self.ended.is_set():
            _abandoned.add(self._task)
            logger.error("answer %s: its engine continues after it was stopped, and is abandoned", self.id)
            self._end(None)

    async def _run(self) -> None:
        """Run the engine and send its output to the readers, until it ends, fails or is stopped."""
        failure: BaseException | None = None
        task = asyncio.current_task()
        assert task is not None
        try:
            async with self._answer as self._deltas:
                if not self.started.done():
                    self.started.set_result(None)
                await self._move(self._deltas, FrameBuffer(self._deltas, self._pacer, self._meter, self._give))
        except KeyboardInterrupt:
            raise
        except asyncio.CancelledError as error:
            if not self.stopping:
                if task.cancelling():  # the event loop is being closed
                    self._stop()
                else:
                    failure = error  # the engine's own
        except BaseException as error:  # noqa: BLE001 - a Rust engine's panic is not an Exception
            failure = error
        finally:
            _abandoned.discard(task)
            self._end(failure)
            failure = None  # its traceback refers to this frame

    async def _move(self, deltas: Deltas, batch: FrameBuffer) -> None:
        self._batch, runner, broadcast = batch, deltas.runner, self._broadcast
        try:
            async for item in deltas.source:
                batch.add(item)
                if broadcast.full and not self.stopping:
                    await broadcast.room()
                if runner.ended:
                    break
        except Exception as error:  # noqa: BLE001 - an engine can fail in any way
            batch.end(error)
        else:
            batch.end()
        # An engine that cannot be closed delays neither the end of the answer nor the release of its place.
        closing = asyncio.get_running_loop().call_later(self._limits.abandon_timeout, self._abandon)
        try:
            await close_source(deltas.source, runner)
        finally:
            closing.cancel()
        self._give(batch.rest())
        runner.check()

    def _give(self, deltas: Sequence[Delta]) -> None:
        """Send deltas to the readers and count their tokens, and the answer if they finish it."""
        given = []
        for delta in deltas:
            self._meter.tokens += len(delta.token_ids)
            if isinstance(delta, Finish):
                self._meter.finish(delta)
                if delta.reason is FinishReason.ERROR and self._ending is not None:
                    self.usage = delta.usage  # the error itself is raised next
                    continue
            given.append(delta)
        if given:
            self._broadcast.add(*given)

    def _end(self, failure: BaseException | None) -> None:
        if self.ended.is_set():
            return
        if self._timer is not None and self._is_closing:
            self._timer.cancel()
            if self._grace and not self.watched and not self.dropped:
                self._begin_grace()
        self.ended.set()
        told: RequestError | None = None
        try:
            told = None if failure is None else explain(failure, self.id)
            self._end_readers(told)
        except Exception:
            logger.exception("answer %s: its last items could not be made", self.id)
            told = told or server_failed()
            self._broadcast.close(told)
        finally:
            self._end_start(told)
            self._meter.end(None if told is None else told.code)
            self._on_end(self)
            self._detach()

    def _end_readers(self, told: RequestError | None) -> None:
        """Send what is left and the last items to the readers; `told` is the failure of the answer or None."""
        if told is not None:  # its traceback, and its causes', would keep the conversation and this answer alive
            told.__traceback__ = told.__context__ = told.__cause__ = None
        if self._batch is not None and not self.dropped:
            self._give(self._batch.rest())
        self._broadcast.seal()
        if self._ending is not None:
            self._broadcast.append(self._ending(told))
            self._broadcast.close()
        else:
            self._broadcast.close(told)

    def _end_start(self, told: RequestError | None) -> None:
        """Wake those who wait for `started`, if the answer has ended before the prompt was accepted."""
        if self.started.done():
            return
        if told is None:
            self.started.set_result(None)
        else:
            self.started.set_exception(told)
            self.started.exception()  # mark the exception as retrieved

    def _detach(self) -> None:
        """Drop references to other objects once the answer has ended and cannot be read, which frees memory at once."""
        if self.dropped and self.ended.is_set():
            self._broadcast.detach()
            self._batch = self._ending = None


_abandoned: set[asyncio.Task[None] | None] = set()
"""Tasks of engines that do not stop, referenced to prevent garbage collection while they run."""


def abandoned() -> int:
    """Return the number of engines in this process that still run although they were stopped and abandoned."""
    return sum(task is not None and not task.done() for task in _abandoned)
