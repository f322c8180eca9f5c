"""One stream of deltas for several readers, each at its own pace, who may come late and come again."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager

import anyio

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.delivery.broadcast import Handoff
from tokenweir.stream.delivery.merge import merge, size_of
from tokenweir.stream.delivery.replay_buffer import ReplayBuffer
from tokenweir.stream.events import Delta
from tokenweir.stream.pipeline.multiplex import move
from tokenweir.stream.pipeline.task_scope import background_tasks


@asynccontextmanager
async def fan_out(
    deltas: AsyncIterable[Delta],
    *,
    max_ahead: int = 1 << 18,
    max_replay: int = 1 << 20,
    stall_timeout: float = 30.0,
    grace: float = 0.0,
) -> AsyncIterator[Handoff[Delta]]:
    """Give a stream to any number of readers, as a context in which they come and go.

        async with fan_out(deltas) as stream:
            with stream.view() as view:     # in each reader's task
                async for batch in view:
                    ...

    The stream is as fast as its fastest reader, and a slow one delays nobody: it gets what it missed merged, or is cut
    off with a `DeliveryError` once that has been dropped. A reader that comes late gets the stream from its start, merged;
    one that lost its connection comes again with the `position` that its view had.

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
    handoff = Handoff(ReplayBuffer(max_replay, merge, size_of), merge, max_ahead=max_ahead, stall_timeout=stall_timeout)
    async with background_tasks() as tasks:
        tasks.start_soon(_pump, deltas, handoff, grace)
        yield handoff


async def _pump(deltas: AsyncIterable[Delta], handoff: Handoff[Delta], grace: float) -> None:
    """Move the stream into the hand-off until it ends or nobody is left to read it."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_close_when_abandoned, handoff, grace, tasks.cancel_scope)
        await move([deltas], handoff)
        tasks.cancel_scope.cancel()


async def _close_when_abandoned(handoff: Handoff[Delta], grace: float, moving: anyio.CancelScope) -> None:
    await handoff.abandoned(grace)
    handoff.close(DeliveryError(f"abandoned: nobody has read this stream for {grace:g} s", "abandoned"))
    moving.cancel()
