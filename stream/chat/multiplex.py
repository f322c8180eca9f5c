"""Several answers as one stream of deltas, told apart by their index.

A failed answer ends with a `Finish`, reason "error"; the others continue. After the last delta the error of the failed
answer with the lowest index is raised, with the errors of the others as notes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from tokenweir.encode.errors import DeliveryError, EngineError
from tokenweir.stream.chat.broadcast import Broadcast, Subscription
from tokenweir.stream.chat.stages import Owned, Stage, close, drive, engine_error
from tokenweir.stream.chat.task_scope import Tasks, background_tasks
from tokenweir.stream.decode.transforms import Transform
from tokenweir.stream.events.deltas import Delta
from tokenweir.stream.events.step import EngineStep

T = TypeVar("T")

MAX_AHEAD = 1 << 18
"""High-water mark: bytes of waiting deltas above which the answers wait for the reader."""


@asynccontextmanager
async def multiplex(answers: Sequence[AsyncIterable[Delta]]) -> AsyncIterator[AsyncGenerator[Delta, None]]:
    """Read several streams at once, each in its own task; yield one async generator of all their deltas, interleaved.

    The streams are owned and closed here; leaving the context closes all of them. The deltas of each must have an
    `index` of their own. If streams fail, the others continue. After the last delta the error of the failed stream that
    comes first in `answers` is raised, with the errors of the others as notes.
    """
    broadcast = Broadcast.of_deltas(max_ahead=MAX_AHEAD)
    async with background_tasks() as tasks:
        start_moving(tasks, answers, broadcast)
        with broadcast.subscribe() as subscription:
            deltas = _each(subscription)
            try:
                yield deltas
            finally:
                await deltas.aclose()


async def _each(subscription: Subscription[T]) -> AsyncGenerator[T, None]:
    async for batch in subscription:
        for item in batch:
            yield item


def start_moving(tasks: Tasks, sources: Collection[AsyncIterable[Delta]], broadcast: Broadcast[Any]) -> None:
    """Start a task for each source that moves its deltas into a broadcast.

    Each source is closed at its end. The broadcast is closed when all have ended. If sources fail, the others continue, and
    the broadcast's readers get the error that `first_of` returns; the tasks do not raise it. A cancellation closes the
    sources, and the broadcast with a `DeliveryError`.
    """
    failures: dict[int, Exception] = {}
    left = len(sources)

    async def move(number: int, source: AsyncIterable[Delta]) -> None:
        nonlocal left
        try:
            try:
                async for delta in source:
                    await broadcast.put(delta)
            finally:
                await close(source)
        except Exception as error:  # noqa: BLE001 - a source can fail in any way
            failures[number] = error
        except BaseException:
            broadcast.close(DeliveryError("closed: the stream was closed before its end", "closed"))
            raise
        left -= 1
        if not left:
            broadcast.close(first_of(failures))

    for number, source in enumerate(sources):
        tasks.start_soon(move, number, source)


def first_of(failures: Mapping[int, Exception]) -> Exception | None:
    """Return the failure with the lowest number, with the other failures added as notes; None if there is no failure."""
    if not failures:
        return None
    first, *others = [failures[number] for number in sorted(failures)]
    for other in others:
        first.add_note(f"another answer failed too: {type(other).__name__}: {other}")
    return first


def decode_answers(source: Any, answers: Sequence[Transform[Delta]]) -> AsyncGenerator[Delta, None]:
    """Decode several answers that an engine generates at once; yield the deltas of all, as they come.

    If answers fail, the others continue. After the last delta the error of the failed answer with the lowest index is
    raised, with the errors of the others as notes.

    Args:
        source: Yields `EngineStep`s with the `index` of their answer, or ids of answer 0. It is owned and closed here.
        answers: The decoder of each answer, by index.

    """
    part = _DecodeAnswers(answers)
    deltas = Owned(drive(source, part, engine_error))
    return Stage(_decode_answers(deltas, part), deltas)


async def _decode_answers(deltas: Owned, part: _DecodeAnswers) -> AsyncGenerator[Delta, None]:
    try:
        async for delta in deltas:
            yield delta
    finally:
        await deltas.aclose()
    if (failure := first_of(part.failures)) is not None:
        raise failure


class _DecodeAnswers:
    """Transform that gives each `EngineStep` to the decoder of the answer with its index."""

    def __init__(self, answers: Sequence[Transform[Delta]]) -> None:
        self.failures: dict[int, Exception] = {}
        self._answers = answers

    @property
    def finished(self) -> bool:
        return all(answer.finished for answer in self._answers)

    def feed(self, item: Any) -> Sequence[Delta]:
        step = item if isinstance(item, EngineStep) else EngineStep(item)
        if not 0 <= step.index < len(self._answers):
            raise EngineError(f"the engine gave ids of answer {step.index}; it was asked for {len(self._answers)}")
        answer = self._answers[step.index]
        try:
            deltas = answer.feed(replace(step, index=0))
        except Exception as error:  # noqa: BLE001 - ids can be wrong in many ways; the other answers continue
            self.failures[step.index] = error
            return answer.finish(error)
        return deltas if step.finish_reason is None else [*deltas, *answer.finish(None)]

    def finish(self, failure: Exception | None) -> Sequence[Delta]:
        return [delta for answer in self._answers for delta in answer.finish(failure)]
