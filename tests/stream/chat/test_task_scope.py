"""Tasks beside a context."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tokenweir.stream.chat.task_scope import background_tasks

pytestmark = pytest.mark.anyio


async def test_leaving_cancels_the_tasks_and_waits_for_their_end():
    ended = []

    async def work(name):
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await checkpoint()
            ended.append(name)

    async with background_tasks() as tasks:
        tasks.start_soon(work, "one")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(work, "two")  # has not begun when the context is left
    assert "one" in ended


async def test_an_error_of_the_body_comes_out_as_it_is():
    with pytest.raises(KeyError, match="body"):
        async with background_tasks() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            raise KeyError("body")


class Stubborn:
    """Run until released."""

    def __init__(self):
        self.cancelled = 0
        self.begun = False
        self.let_go = asyncio.Event()

    async def __call__(self):
        self.begun = True
        while not self.let_go.is_set():
            try:
                await self.let_go.wait()
            except asyncio.CancelledError:
                self.cancelled += 1


@pytest.mark.parametrize("by_scope", [False, True])
async def test_a_task_is_cancelled_once(by_scope, anyio_backend_name):
    if anyio_backend_name != "asyncio":
        pytest.skip("a nursery of trio cancels as long as it takes")
    work = Stubborn()

    async def body():
        async with background_tasks() as tasks:
            tasks.start_soon(work)
            await asyncio.sleep(0)
            if by_scope:
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await anyio.sleep_forever()

    running = asyncio.ensure_future(body())
    for _ in range(100):
        await asyncio.sleep(0)
    running.cancel()
    for _ in range(100):
        await asyncio.sleep(0)
    assert work.cancelled == 1 and not running.done()
    work.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_task_that_has_not_begun_begins(anyio_backend_name):
    if anyio_backend_name != "asyncio":
        pytest.skip("a nursery of trio begins every task")
    work = Stubborn()
    work.let_go.set()
    async with background_tasks() as tasks:
        tasks.start_soon(work)
    assert work.begun


@pytest.mark.parametrize("failure", [SystemExit, GeneratorExit, RuntimeError])
async def test_what_a_task_fails_with_is_raised_in_the_end(failure, anyio_backend_name):
    if anyio_backend_name != "asyncio":
        pytest.skip("a nursery of trio raises a group")

    async def work():
        raise failure

    with pytest.raises(failure):
        async with background_tasks() as tasks:
            tasks.start_soon(work)
            await asyncio.sleep(0.01)
