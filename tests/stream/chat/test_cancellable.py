"""A source that runs ahead is left alone for a while: nothing is lost or late, and it can be interrupted all the same."""

import asyncio
from contextlib import aclosing

import pytest
from interrupting import IN_ASYNCIO, by_scope, interrupt_everywhere

from tokenweir.stream.chat import cancellable
from tokenweir.stream.chat.cancellable import Cancellable

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


def turns(count):
    """A future that is done after so many turns of the event loop."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def turn(left):
        if left and not future.done():
            loop.call_soon(turn, left - 1)
        elif not future.done():
            future.set_result(None)

    turn(count)
    return future


class Engine:
    """Gives all that it was told since it was asked."""

    def __init__(self):
        self.waits = None
        self.closed = False
        self._items = []

    def give(self, item):
        self._items.append(item)
        if self.waits is not None and not self.waits.done():
            self.waits.set_result(None)

    async def generate(self):
        try:
            while True:
                if not self._items:
                    self.waits = asyncio.get_running_loop().create_future()
                    await self.waits
                items, self._items = self._items, []
                yield items
        finally:
            self.closed = True


class Reader:
    """A task that reads a source."""

    def __init__(self):
        self.engine = Engine()
        self.source = Cancellable(self.engine.generate(), ["last"], runs_ahead=True)
        self.got = []
        self.pause = asyncio.get_running_loop().create_future()
        self.source.pause(self.pause)
        self.task = asyncio.create_task(self._read())

    async def _read(self):
        async with aclosing(self.source):
            async for items in self.source:
                self.got.append(items)

    async def give(self, *items):
        for item in items:
            self.engine.give(item)
            await turns(5)


@pytest.fixture
async def reader():
    reader = Reader()
    await turns(5)
    yield reader
    reader.task.cancel()
    await asyncio.wait({reader.task})
    assert reader.engine.closed


async def test_what_comes_in_a_pause_is_read_after_it(reader):
    await reader.give("a", "b", "c")
    assert reader.got == []
    reader.pause.set_result(None)
    await turns(5)
    assert reader.got == [["a", "b", "c"]]
    await reader.give("d")  # the pause was for one wait
    assert reader.got == [["a", "b", "c"], ["d"]]


async def test_after_a_pause_in_which_nothing_came_the_source_is_awaited(reader):
    reader.pause.set_result(None)
    await turns(5)
    assert reader.got == []
    await reader.give("a")
    assert reader.got == [["a"]]


async def test_a_source_fails_after_the_pause(reader):
    reader.engine.waits.set_exception(RuntimeError("broken"))
    reader.pause.set_result(None)
    with pytest.raises(RuntimeError, match="broken"):
        await reader.task


@pytest.mark.parametrize("given", [(), ("a",)], ids=["nothing has come", "something has come"])
async def test_cancelling_ends_a_pause(reader, given):
    await reader.give(*given)
    reader.source.cancel()
    await reader.task
    assert reader.engine.closed and reader.got == ["last"]
    assert reader.engine.waits.cancelled() is not bool(given)


async def test_the_task_that_a_source_waits_for_ends_before_its_reader():
    ended = []

    async def work():
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await turns(5)
            ended.append("work")

    async def generate():
        await asyncio.create_task(work())
        yield 1

    source = Cancellable(generate(), ())
    source.pause(asyncio.get_running_loop().create_future())
    reader = asyncio.ensure_future(anext(aiter(source)))
    await turns(5)
    reader.cancel()
    await asyncio.wait({reader})
    assert reader.cancelled() and ended == ["work"]


@pytest.mark.parametrize("ready", [False, True], ids=["pending", "done in the pause"])
async def test_a_future_may_be_awaited_by_others_in_a_pause(ready):
    shared = asyncio.get_running_loop().create_future()

    async def generate():
        yield await shared

    async def other():
        return await shared

    source, pause = Cancellable(generate(), (), runs_ahead=True), asyncio.get_running_loop().create_future()
    source.pause(pause)
    tasks = [asyncio.ensure_future(work) for work in (anext(aiter(source)), other(), other())]
    await turns(5)
    assert not any(task.done() for task in tasks)
    if ready:
        shared.set_result("loaded")
        await turns(5)
    pause.set_result(None)
    await turns(5)
    if not ready:
        shared.set_result("loaded")
    assert await asyncio.gather(*tasks) == ["loaded"] * 3


@pytest.mark.parametrize("pause", [0, 1, 4])
@pytest.mark.parametrize("way", [by_scope, *IN_ASYNCIO])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_interrupted_at_every_suspension(loop, way, pause):
    async def generate(watch):
        async with watch.open():
            for number in range(3):
                await turns(2)
                yield number

    async def body(watch):
        source, got = Cancellable(generate(watch), (), runs_ahead=True), []
        async with aclosing(source):
            async for number in source:
                got.append(number)
                source.pause(turns(pause))
        assert got == [0, 1, 2]

    interrupt_everywhere(loop, way, body, at_least=3)


async def test_cancelling_a_source_that_has_never_waited_while_others_have_their_turn(monkeypatch):
    """A second request would wait without anything to interrupt it."""

    async def generate():
        yield "first"
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(cancellable, "YIELD_INTERVAL", 0)
    source = Cancellable(generate(), ["last"])
    items = aiter(source)
    assert await anext(items) == "first"
    asyncio.get_running_loop().call_soon(source.cancel)
    async with asyncio.timeout(5):
        assert await anext(items) == "last"
