"""Errors of worker threads, and what their frames hold, are freed without the garbage collector."""

import asyncio
import gc
import os
import subprocess
import sys
from contextlib import suppress
from contextvars import ContextVar
from threading import Event, Lock
from weakref import ref

import pytest

from tokenweir.encode.base.platform import usable_cores
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread


class Held:
    """An object of a refused request."""


async def test_results_and_errors_are_those_of_the_call():
    assert await run_in_thread(lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)


async def test_no_more_threads_work_than_there_are_though_callers_leave():
    working, most, lock, ended = 0, 0, Lock(), Event()

    def work():
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        ended.wait(30)
        with lock:
            working -= 1

    for _ in range(usable_cores() + 20):
        task = asyncio.ensure_future(run_in_thread(work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    ended.set()
    assert await run_in_thread(lambda: 5) == 5
    assert 0 < most <= usable_cores() + 4


async def test_variables_of_the_context_are_the_callers():
    variable = ContextVar("variable")
    variable.set(7)
    assert await run_in_thread(variable.get) == 7


FORKED = """
import asyncio, os
from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
assert asyncio.run(run_in_thread(lambda: 1)) == 1
if (child := os.fork()) == 0:
    os._exit(asyncio.run(run_in_thread(lambda: 2)))
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_fork_has_threads_of_its_own():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], check=True, timeout=60)


async def test_an_error_holds_nothing_once_it_is_handled():
    held = []

    def refuse():
        mine = Held()
        held.append(ref(mine))
        raise ValueError(mine)

    gc.disable()
    try:
        for _ in range(2):
            with suppress(ValueError):
                await run_in_thread(refuse)
        await run_in_thread(lambda: None)  # the thread refers to its last work until its next
        assert [each() for each in held] == [None, None]
    finally:
        gc.enable()
