"""Answers in flight: each in a task of its own, read by those who want it, and stopped when nobody is left.

The server's tasks are asyncio's own. An engine may swallow its cancellation, and the cancel scopes of a task group would
then cancel it again and again and never end. Here it is cancelled once; if it goes on, it is abandoned: its answer ends
without it, and the log says so.
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
from tokenweir.stream.serve.answers.batch import Batch
from tokenweir.stream.serve.answers.pacer import Pacer
from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.monitoring.failures import explain
from tokenweir.stream.serve.monitoring.metrics import Meter
from tokenweir.stream.serve.wire.errors import RequestError

logger = logging.getLogger("tokenweir.serve")

T = TypeVar("T")


class Generation(Generic[T]):
    """One answer: the engine at one end, the readers of what is made of its deltas at the other.

    Args:
        answer_id: Its id, under which the log has what it tells of it.
        answer: The context in which the deltas come, as of `chat()`; leaving it stops the engine.
        replay: Keeps what has been read.
        make: Makes what readers get of the deltas that waited.
        limits: What it may cost.
        pacer: Says when readers get what is new.
        ending: Makes the last items, if it ends without a `Finish`, of the failure; None stands for a cancelled one.
            Without it the failure is raised to the readers.
        on_end: Called once, with the generation, when the engine is stopped or abandoned.
        grace: Seconds for which it goes on without a reader.
        meter: Counts its tokens.

    Attributes:
        id: As given.
        started: Done once the prompt was accepted; has the error otherwise.
        ended: Set once the engine is stopped or abandoned.
        usage: Of an answer that failed.
        stopping: Whether it was stopped before its end.
        dropped: Whether nobody can read it any more.

    """

    __slots__ = (
        "_answer",
        "_batch",
        "_broadcast",
        "_deltas",
        "_ending",
        "_grace",
        "_limits",
        "_meter",
        "_on_end",
        "_pacer",
        "_task",
        "_timer",
        "dropped",
        "ended",
        "id",
        "started",
        "stopping",
        "usage",
    )

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
        self._batch: Batch | None = None
        self._timer: asyncio.TimerHandle | None = None  # until it is abandoned, or dropped since nobody reads it
        self._task: asyncio.Task[None] | None = None
        self._broadcast = Broadcast(replay, make, max_ahead=limits.max_pending_bytes, on_unwatched=self._unwatched)

    @property
    def watched(self) -> bool:
        """Whether anybody reads it."""
        return self._broadcast.watched

    @property
    def prompt_ids(self) -> Sequence[int]:
        """What the engine was given; nothing until the prompt was accepted."""
        return () if self._deltas is None else self._deltas.prompt_ids

    @property
    def pending_bytes(self) -> int:
        """Memory of the deltas that wait for the fastest reader."""
        return self._broadcast.pending_bytes

    def start(self, first: Iterable[T] = ()) -> None:
        """Begin, in a task of its own; `first` is what readers get before anything else."""
        self._broadcast.append(first)
        self._task = asyncio.get_running_loop().create_task(self._run())
        # Nothing of a task runs that is cancelled before it began.
        self._task.add_done_callback(lambda _: self._end(None))

    def subscribe(self, start: int = 0) -> Subscription[T]:
        """Read it from an item's number on; raises as `Broadcast.subscribe`."""
        if self._timer is not None and not self.stopping:
            self._timer.cancel()
        return self._broadcast.subscribe(start)

    def cancel(self) -> None:
        """Stop the engine; the text that was held, the usage and what says so can still be read."""
        if self.ended.is_set() or self.stopping:
            return
        self._stop()
        if self._deltas is None:
            assert self._task is not None
            self._task.cancel()
        else:
            self._deltas.cancel()
            self._broadcast.seal()  # makes room, or the engine would stay open until a slow reader has taken something

    def drop(self) -> None:
        """Stop the engine and let nobody read any more."""
        self.dropped = True
        self._broadcast.close(DeliveryError("closed: the response was closed before its end", "closed"))
        if not self.ended.is_set():
            if not self.stopping:
                self._stop()
            if self._task is not None:
                self._task.cancel()
        self._detach()

    async def wait_ended(self, seconds: float) -> None:
        """Wait until the engine has stopped; one that takes longer than this is abandoned."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        self._abandon()

    def _stop(self) -> None:
        self.stopping = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._limits.abandon_timeout, self._abandon)

    def _unwatched(self) -> None:
        """Nobody reads it any more."""
        if self._grace == 0 or self._broadcast.full:
            self.drop()
        elif not self.stopping:
            self._timer = asyncio.get_running_loop().call_later(self._grace, self._expire)

    def _expire(self) -> None:
        if not self.watched:
            self.drop()

    def _abandon(self) -> None:
        if not self.ended.is_set():
            _abandoned.add(self._task)
            logger.error("answer %s: its engine goes on after it was stopped, and is abandoned", self.id)
            self._end(None)

    async def _run(self) -> None:
        """Move the deltas into the broadcast."""
        failure: BaseException | None = None
        task = asyncio.current_task()
        assert task is not None
        try:
            async with self._answer as self._deltas:
                if not self.started.done():
                    self.started.set_result(None)
                await self._move(self._deltas, Batch(self._deltas, self._pacer, self._meter, self._give))
        except KeyboardInterrupt:
            raise
        except asyncio.CancelledError as error:
            if not self.stopping:
                if task.cancelling():  # the event loop is being closed
                    self._stop()
                else:
                    failure = error  # the engine's own
        except BaseException as error:  # noqa: BLE001 - a panic of an engine written in Rust is none of Exception's
            failure = error
        finally:
            _abandoned.discard(task)
            self._end(failure)
            failure = None  # whose traceback has this frame

    async def _move(self, deltas: Deltas, batch: Batch) -> None:
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
        # An engine that does not let itself be closed keeps neither the end of the answer nor its place.
        closing = asyncio.get_running_loop().call_later(self._limits.abandon_timeout, self._abandon)
        try:
            await close_source(deltas.source, runner)
        finally:
            closing.cancel()
        self._give(batch.rest())
        runner.check()

    def _give(self, deltas: Sequence[Delta]) -> None:
        """Tell the readers, and count what has ended."""
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
        self.ended.set()
        if self._timer is not None:
            self._timer.cancel()
        told = None if failure is None else explain(failure, self.id)
        if told is not None:  # its frames, and those of what caused it, hold the conversation and this answer
            told.__traceback__ = told.__context__ = told.__cause__ = None
        if self._batch is not None and not self.dropped:
            self._give(self._batch.rest())
        self._broadcast.seal()
        if self._ending is not None:
            self._broadcast.append(self._ending(told))
            self._broadcast.close()
        else:
            self._broadcast.close(told)
        if not self.started.done():
            if told is not None:
                self.started.set_exception(told)
                self.started.exception()  # nobody needs to ask
            else:
                self.started.set_result(None)
        self._meter.end(None if told is None else told.code)
        self._on_end(self)
        self._detach()

    def _detach(self) -> None:
        """Once it has ended and nobody can read it, let go of all that refers to it: what it holds is freed at once then."""
        if self.dropped and self.ended.is_set():
            self._broadcast.detach()
            self._batch = self._ending = None


_abandoned: set[asyncio.Task[None] | None] = set()
"""Tasks of engines that do not stop, kept so that nothing collects them while they run."""


def abandoned() -> int:
    """How many engines have been abandoned and still run."""
    return sum(task is not None and not task.done() for task in _abandoned)
