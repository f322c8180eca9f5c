"""Worker threads for text: of a lower priority than the event loop, and whose errors leave no reference cycle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TypeVar

from anyio import to_thread

from tokenweir.encode.platform import lower_thread_priority, usable_cores

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Call `work` in a worker thread.

    Under asyncio the threads are this module's own, and have a lower priority: where a core is short, the event loop and its
    streams go before the prompts that are made beside them. Not more threads work than the pool has, also where callers are
    cancelled and no longer wait for them.

    An error that a future passes on refers to itself, by its traceback and the future of the call. What its frames hold, such
    as a megabyte of a refused request, would stay until the garbage collector runs, and be freed by it in one pause.
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
    await loop.run_in_executor(_threads(os.getpid()), copy_context().run, lambda: outcomes.append(_outcome(work)))
    return outcomes.pop()


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # under trio
        return None


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Return the threads of a process; a fork has none of its parent's."""
    return ThreadPoolExecutor(usable_cores() + 4, "tokenweir-text", lower_thread_priority)


def _outcome(work: Callable[[], T]) -> tuple[list[T], Exception | None]:
    """Return the result of a call, in a list, or its error."""
    try:
        return [work()], None
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        return [], error
