"""Errors of worker threads, and what their frames hold, are freed without the garbage collector."""

import gc
from contextlib import suppress
from weakref import ref

import pytest

from tokenweir.stream.prompts.worker_thread import run_in_thread

pytestmark = pytest.mark.asyncio  # trio refers to the last result itself


class Held:
    """An object of a refused request."""


async def test_results_and_errors_are_those_of_the_call():
    assert await run_in_thread(lambda: None) is None
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)


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
