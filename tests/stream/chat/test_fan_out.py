"""One stream for several readers."""

from contextlib import asynccontextmanager

import anyio
import pytest

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.fan_out import fan_out
from tokenweir.stream.events.deltas import Finish, FinishReason, TextDelta
from tokenweir.stream.events.merge import DELTA_BYTES, merge

pytestmark = pytest.mark.anyio

STOP = Finish(FinishReason.STOP)


class Source:
    """A stream that tells how many deltas were read and whether it was closed; it waits for events and for seconds."""

    def __init__(self, *items):
        self.items = items
        self.given = 0
        self.closed = anyio.Event()

    async def deltas(self):
        try:
            for item in self.items:
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, anyio.Event):
                    await item.wait()
                elif isinstance(item, (int, float)):
                    await anyio.sleep(item)
                else:
                    await anyio.lowlevel.checkpoint()
                    self.given += 1
                    yield item
        finally:
            self.closed.set()


@asynccontextmanager
async def fanned(*items, **options):
    source = Source(*items)
    async with fan_out(source.deltas(), **options) as stream:
        stream.source = source
        yield stream


async def read(stream, got, *, batches=None):
    with stream.subscribe() as subscription:
        async for batch in subscription:
            got.append(batch)
            if batches is not None and len(got) == batches:
                return


def text_of(got):
    return "".join(delta.text for batch in got for delta in batch if isinstance(delta, TextDelta))


async def test_a_reader_that_never_reads_delays_nobody():
    letters = [TextDelta("x")] * 500
    async with fanned(*letters, STOP, max_ahead=10 * DELTA_BYTES, max_replay=20 * DELTA_BYTES) as stream:
        with stream.subscribe() as stuck:
            got = []
            with anyio.fail_after(5):
                await read(stream, got)
            assert text_of(got) == "x" * 500
            with pytest.raises(DeliveryError, match="^too far behind"):
                await stuck.take()


async def test_who_comes_again_gets_what_it_lacks():
    async with fanned(*[TextDelta(letter) for letter in "abcdef"], STOP, grace=5) as stream:
        with stream.subscribe() as subscription:
            first = await subscription.take()
        with stream.subscribe(subscription.position) as again:
            rest = [batch async for batch in again]
    assert merge([*first, *(delta for batch in rest for delta in batch)]) == [TextDelta("abcdef"), STOP]


async def test_the_engine_is_closed_when_the_last_reader_has_left():
    async with fanned(TextDelta("a"), 60) as stream:
        await read(stream, [], batches=1)
        with anyio.fail_after(1):
            await stream.source.closed.wait()
        with stream.subscribe() as subscription:
            assert await subscription.take() == [TextDelta("a")]
            with pytest.raises(DeliveryError, match="^abandoned: nobody has read this stream for 0 s$") as caught:
                await subscription.take()
            assert caught.value.outcome == "abandoned"


async def test_the_engine_outlives_its_last_reader_for_the_grace_period():
    async with fanned(TextDelta("a"), 0.05, TextDelta("b"), 60, grace=0.2) as stream:
        with stream.subscribe() as subscription:
            await subscription.take()
        await anyio.sleep(0.1)
        assert not stream.source.closed.is_set()
        with stream.subscribe(subscription.position) as again:
            assert await again.take() == [TextDelta("b")]
        with anyio.fail_after(5):
            await stream.source.closed.wait()


async def test_leaving_the_context_closes_the_engine_and_ends_the_readers():
    async with anyio.create_task_group() as tasks:
        outcomes = []

        async def reader(stream):
            try:
                await read(stream, [])
            except DeliveryError as error:
                outcomes.append((error.outcome, str(error)))

        async with fanned(TextDelta("a"), 60) as stream:
            tasks.start_soon(reader, stream)
            await anyio.wait_all_tasks_blocked()
        assert stream.source.closed.is_set()
    assert outcomes == [("closed", "closed: the stream was closed before its end")]


async def test_what_the_engine_fails_with_comes_to_every_reader_and_to_nobody_else():
    failure, got = RuntimeError("engine"), []

    async def reader(stream):
        with pytest.raises(RuntimeError, match="^engine$"):
            await read(stream, got)

    async with fanned(TextDelta("a"), failure) as stream, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(reader, stream)
    assert text_of(got) == "aaa"


async def test_an_error_in_the_body_comes_out_unchanged():
    with pytest.raises(KeyError, match="body"):
        async with fanned(TextDelta("a"), 60) as stream:
            raise KeyError("body")
    assert stream.source.closed.is_set()
