"""One stream of deltas for several readers, each at its own pace, who may come late and come again."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Broadcast, Subscription
from tokenweir.stream.chat.multiplex import start_moving
from tokenweir.stream.chat.task_scope import background_tasks
from tokenweir.stream.events.deltas import Delta


class FanOut:
    """What `fan_out` gives: the readers' end of a stream. Its producer's end is out of their reach."""

    def __init__(self, broadcast: Broadcast[Delta]) -> None:
        self._broadcast = broadcast

    def subscribe(self, start: int = 0, *, interval: float = 0.0) -> Subscription[Delta]:
        """Add a reader; arguments and errors are those of `Broadcast.subscribe`."""
        return self._broadcast.subscribe(start, interval=interval)


@asynccontextmanager
async def fan_out(
    deltas: AsyncIterable[Delta],
    *,
    max_ahead: int = 1 << 18,
    max_replay: int = 1 << 20,
    stall_timeout: float = 30.0,
    grace: float = 0.0,
) -> AsyncIterator[FanOut]:
    """Give a stream to any number of readers, as a context in which they come and go.

        async with fan_out(deltas) as stream:
            with stream.subscribe() as subscription:     # in each reader's task
                async for batch in subscription:
                    ...

    The stream is as fast as its fastest reader, and a slow one delays nobody: it gets what it missed merged, or is cut
    off with a `DeliveryError` once that has been dropped. A reader that comes late gets the stream from its start, merged;
    one that lost its connection comes again with the `position` that its subscription had.

    When the last reader has left, or the context is left, `deltas` is closed at once.

    Args:
        deltas: The stream, such as `chat()` gives; it is owned and closed here.
        max_ahead: Bytes of deltas that may wait for the fastest reader before the stream waits for it.
        max_replay: Bytes of deltas that are kept for the readers behind.
        stall_timeout: Seconds for which the stream waits before readers that took nothing are cut off.
        grace: Seconds without a reader, after the first one, until `deltas` is closed.

    Raises:
        Exception: To each reader, what the stream failed with, after all that came before.

    """
    broadcast = Broadcast.of_deltas(max_ahead=max_ahead, max_replay=max_replay, stall_timeout=stall_timeout)
    async with background_tasks() as tasks:
        tasks.start_soon(_pump, deltas, broadcast, grace)
        yield FanOut(broadcast)


async def _pump(deltas: AsyncIterable[Delta], broadcast: Broadcast[Delta], grace: float) -> None:
    """Move the stream into the broadcast until it ends or nobody is left to read it."""
    async with background_tasks() as tasks:
        start_moving(tasks, [deltas], broadcast)
        await broadcast.abandoned(grace)
        broadcast.close(DeliveryError(f"abandoned: nobody has read this stream for {grace:g} s", "abandoned"))
