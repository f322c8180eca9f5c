"""Interrupts a coroutine at its n-th suspension, for every n, in every way that asyncio and trio have."""

from __future__ import annotations

import asyncio
import gc
import sys
import warnings
from contextlib import asynccontextmanager
from itertools import count

import anyio
import pytest
from anyio.lowlevel import checkpoint
from full_run import FULL

LOOPS = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}


class Suspended:
    """Awaits a coroutine, and calls `interrupt` at its `at`-th suspension and, if `again`, at every one after it.

    Attributes:
        count: How many times it has been suspended.
        over: Whether it has returned.

    """

    def __init__(self, coroutine, at, interrupt, *, again=False):
        self.coroutine, self.at, self.interrupt, self.again = coroutine, at, interrupt, again
        self.count, self.over = 0, False

    def __await__(self):
        step, value = self.coroutine.send, None
        while True:
            try:
                waits_for = step(value)
            except StopIteration:
                self.over = True
                return
            self.count += 1
            if self.count == self.at or (self.again and self.count > self.at):
                self.interrupt()
            try:
                step, value = self.coroutine.send, (yield waits_for)
            except BaseException as error:  # noqa: BLE001 - the loop's cancellation, on its way into the coroutine
                step, value = self.coroutine.throw, error


async def by_scope(body, at):
    with anyio.CancelScope() as scope:
        await (run := Suspended(body, at, scope.cancel))
    assert run.count <= at or not run.over, "the cancellation was swallowed"
    return run


async def by_timeout(body, at):
    def expire():
        scope.deadline = anyio.current_time()

    try:
        with anyio.fail_after(3600) as scope:
            await (run := Suspended(body, at, expire))
    except TimeoutError:
        assert run.count >= at
    return run


async def by_task_group(body, at):
    """Run a coroutine whose sibling in a task group fails at its `at`-th suspension; return the `Suspended`."""
    fail = anyio.Event()

    async def failing():
        await fail.wait()
        raise KeyError("sibling")

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(failing)
            await checkpoint()
            await (run := Suspended(body, at, fail.set))
            tasks.cancel_scope.cancel()
    except* KeyError:
        assert run.count >= at
    return run


async def by_task(body, at, *, again=False):
    """Run a coroutine in a task that is cancelled at its `at`-th suspension, and with `again` at each later one.

    Return the `Suspended`.
    """

    async def task():
        await run

    run = Suspended(body, at, lambda: made.cancel(), again=again)
    made = asyncio.create_task(task())
    try:
        await made
    except asyncio.CancelledError:
        assert run.count >= at
    return run


async def by_task_again(body, at):
    return await by_task(body, at, again=True)


async def by_asyncio_timeout(body, at):
    try:
        async with asyncio.timeout(3600) as limit:
            await (run := Suspended(body, at, lambda: limit.reschedule(0)))
    except TimeoutError:
        assert run.count >= at
    return run


ANYWHERE = (by_scope, by_timeout, by_task_group)
IN_ASYNCIO = (by_task, by_task_again, by_asyncio_timeout)
WAYS = dict.fromkeys(LOOPS, ANYWHERE + IN_ASYNCIO) | {"trio": ANYWHERE}
if not FULL:
    WAYS["uvloop"] = (by_scope, by_task)  # whose tasks are those of asyncio
INTERRUPTED = pytest.mark.parametrize(("loop", "way"), [(loop, way) for loop in LOOPS for way in WAYS[loop]])
SHORTLY = pytest.mark.parametrize(
    ("loop", "way"), [("asyncio", by_scope), ("asyncio", by_task_again), ("uvloop", by_task), ("trio", by_scope)]
)


class Watch:
    """Counts of the resources that a run has opened and closed."""

    def __init__(self):
        self.opened = self.closed = 0

    @asynccontextmanager
    async def open(self):
        self.opened += 1
        try:
            yield
        finally:
            self.closed += 1
            await checkpoint()  # an engine may well wait while it closes


def interrupt_everywhere(loop, way, make_body, *, at_least=2, opens=1, settled=lambda watch: None):
    """Run `make_body(watch)` again and again, interrupted at its first suspension, its second, and so on, until a run ends before.

    Asserts that each run closes all that it has opened and leaves no tasks and warnings.

    Args:
        loop: The event loop's kind.
        way: The way to interrupt, such as `by_task`.
        make_body: Returns the coroutine of a run.
        at_least: The number of suspensions that runs must exceed.
        opens: The number of resources that an uninterrupted run opens.
        settled: Waits or checks after each run.

    """

    async def runs():
        idle = len(anyio.get_running_tasks())
        for at in count(1):
            watch = Watch()
            with anyio.fail_after(10):
                run = await way(make_body(watch), at)
                settled(watch)
                assert watch.closed == watch.opened <= opens, f"interrupted at suspension {at}"
                assert len(anyio.get_running_tasks()) == idle, f"tasks left after suspension {at}"
            if run.count < at:
                assert watch.opened == opens
                return at

    assert no_warning(lambda: in_loop(loop, runs)) > at_least


def in_loop(loop, function):
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    return anyio.run(function, **LOOPS[loop])


def no_warning(call):
    """Call a function and collect its garbage.

    Return its result. Assert that neither causes a warning or an unraisable error.
    """
    unraisable = []
    gc.collect()
    gc.freeze()  # what is left stays, and is not looked at again
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = call()
            gc.collect()
    finally:
        sys.unraisablehook = before
    assert [str(each.exc_value) for each in unraisable] == []
    return result
