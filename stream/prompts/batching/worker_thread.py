"""Worker threads for work on texts, at a lower priority than the event loop's thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

from anyio import to_thread

from tokenweir.encode.base.platform import lower_thread_priority, usable_cores

T = TypeVar("T")

STARTED: ContextVar[list[Future[Any]] | None] = ContextVar("started", default=None)
"""Receives the work that the current task gives to threads: a thread works on although its caller was cancelled."""


async def run_in_thread(work: Callable[[], T]) -> T:
    """Call `work` in a worker thread; return its result, or raise its error.

    Under asyncio the threads are this module's own, and have a lower priority: if cores are short, the event loop and its
    streams go before the prompts that are encoded meanwhile. The number of threads is bounded, also if callers are cancelled
    and no longer wait for them.

    The error is raised without a reference cycle. An error that a future passes on would refer to itself, by its
    traceback and the future. The objects in its frames, such as a megabyte of a refused request, would stay until the
    garbage collector runs.
    """
    result, error = await _outcome_in_thread(work)
    if error is None:
        return result[0]
    try:
        raise error
    finally:
        del error


async def _outcome_in_thread(work: Callable[[], T]) -> tuple[list[T], Exception | None]:
    if (loop := _asyncio_loop()) is None:
        return await to_thread.run_sync(_outcome, work)
    outcomes: list[tuple[list[T], Exception | None]] = []  # futures of an executor and of asyncio refer to one another
    running = _threads(os.getpid()).submit(copy_context().run, lambda: outcomes.append(_outcome(work)))
    if (started := STARTED.get()) is not None:
        started.append(running)
    await asyncio.wrap_future(running, loop=loop)
    return outcomes.pop()


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # under trio
        return None


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the thread pool of the process with this id, which is the calling one.

    Each process has a pool of its own, because a fork does not inherit its parent's threads.
    """
    return ThreadPoolExecutor(usable_cores() + 4, "tokenweir-text", lower_thread_priority)


def _outcome(work: Callable[[], T]) -> tuple[list[T], Exception | None]:
    """Call `work`; return ([result], None), or ([], error) if it raised an `Exception`."""
    try:
        return [work()], None
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        return [], error
