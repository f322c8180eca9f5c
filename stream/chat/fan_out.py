"""One stream of deltas for several readers, each at its own pace; readers may join late and reconnect."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Broadcast, Subscription
from tokenweir.stream.chat.multiplex import start_moving
from tokenweir.stream.chat.task_scope import background_tasks
from tokenweir.stream.events.deltas import Delta


class FanOut:
    """A stream of deltas that any number of readers can subscribe to; `fan_out` creates it."""

    def __init__(self, broadcast: Broadcast[Delta]) -> None:
        self._broadcast = broadcast

    def subscribe(self, start: int = 0, *, interval: float = 0.0) -> Subscription[Delta]:
        """Add a reader and return its subscription; arguments and errors are those of `Broadcast.subscribe`."""
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
    """Serve a stream to any number of readers while the context lasts.

        async with fan_out(deltas) as stream:
            with stream.subscribe() as subscription:     # in each reader's task
                async for batch in subscription:
                    ...

    The stream is as fast as its fastest reader. A slow reader delays no other: it gets the deltas it missed merged, or is
    cut off with a `DeliveryError` once they have been dropped. A late reader gets the stream from its start, merged. A
    reader that lost its connection subscribes again with the `position` of its subscription.

    When the last reader leaves, or the context is left, `deltas` is closed at once.

    Args:
        deltas: The stream, such as `chat()` gives; it is owned and closed here.
        max_ahead: High-water mark in bytes: above it the stream waits for its fastest reader.
        max_replay: Bytes of deltas that are kept for slower readers.
        stall_timeout: Seconds that a full stream waits before it cuts off readers that took nothing.
        grace: Seconds without a reader, after the first one, until `deltas` is closed.

    Raises:
        Exception: In each reader, the failure of the stream, after all deltas before it.

    """
    broadcast = Broadcast.of_deltas(max_ahead=max_ahead, max_replay=max_replay, stall_timeout=stall_timeout)
    async with background_tasks() as tasks:
        tasks.start_soon(_pump, deltas, broadcast, grace)
        yield FanOut(broadcast)


async def _pump(deltas: AsyncIterable[Delta], broadcast: Broadcast[Delta], grace: float) -> None:
    """Move the deltas into the broadcast until the stream ends, or has had no reader for `grace` seconds."""
    async with background_tasks() as tasks:
        start_moving(tasks, [deltas], broadcast)
        await broadcast.abandoned(grace)
        broadcast.close(DeliveryError(f"abandoned: nobody has read this stream for {grace:g} s", "abandoned"))
