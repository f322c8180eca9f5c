"""Calls in worker threads whose errors leave no reference cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T]) -> T:
    """Call `work` in a worker thread.

    An error that anyio passes on refers to itself, by its traceback and the future of the call. What its frames hold, such
    as a megabyte of a refused request, would stay until the garbage collector runs, and be freed by it in one pause.
    """
    result, error = await to_thread.run_sync(_outcome, work)
    if error is None:
        return result[0]
    try:
        raise error
    finally:
        del error


def _outcome(work: Callable[[], T]) -> tuple[list[T], Exception | None]:
    """Return the result of a call, in a list, or its error."""
    try:
        return [work()], None
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        return [], error
