"""SyncEngine: a blocking generator in a thread; order, errors, back-pressure, turns, and closing under asyncio and trio."""

from __future__ import annotations

import subprocess
import sys
import threading
from asyncio import CancelledError
from contextlib import aclosing
from contextvars import ContextVar
from itertools import count

import anyio
import pytest
from engine_runs import steps_of

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines import SyncEngine
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

pytestmark = pytest.mark.anyio

LONG = 20  # seconds to wait for what should come at once, on a machine that is busy


async def until(condition):
    with anyio.fail_after(LONG):
        while not condition():  # noqa: ASYNC110 - another thread makes it true
            await anyio.sleep(0.002)


def engine_threads():
    return [thread for thread in threading.enumerate() if thread.name == "tokenweir-engine"]


class Endless:
    """A generator of 0, 1, 2... that shows how far it is and whether it was closed."""

    def __init__(self):
        self.made = 0
        self.closed = threading.Event()

    def __call__(self, prompt_ids, sampling):
        try:
            for number in count():
                self.made = number + 1
                yield number
        finally:
            self.closed.set()


# -- ids ---------------------------------------------------------------------------------------------------------------


async def test_prompt_and_sampling_go_in_and_steps_come_out_in_order():
    def generate(prompt_ids, sampling):
        yield from prompt_ids
        yield [7, 8]
        yield EngineStep([sampling.max_tokens], finish_reason="length")

    steps = await steps_of(SyncEngine(generate), [1, 2], max_tokens=9)
    assert steps == [[1], [2], [7, 8], EngineStep([9], finish_reason="length")]


async def test_more_steps_than_the_buffer_holds():
    engine = SyncEngine(lambda prompt_ids, sampling: range(1000), buffer=3)
    assert await steps_of(engine) == [[number] for number in range(1000)]


async def test_one_thread_and_the_callers_context():
    request = ContextVar("request")
    request.set("mine")
    seen = []

    def generate(prompt_ids, sampling):
        for number in range(50):
            seen.append((threading.get_ident(), request.get()))
            yield number

    await steps_of(SyncEngine(generate, buffer=1))
    assert set(seen) == {(seen[0][0], "mine")}
    assert seen[0][0] != threading.get_ident()


# -- errors ------------------------------------------------------------------------------------------------------------


async def test_an_error_comes_after_the_steps_before_it():
    def generate(prompt_ids, sampling):
        yield 1
        yield 2
        raise ZeroDivisionError("in the model")

    seen = []
    with pytest.raises(ZeroDivisionError, match="in the model"):
        async with aclosing(SyncEngine(generate).generate([], Sampling())) as generated:
            async for step in generated:
                seen.append(step)
    assert seen == [[1], [2]]


async def test_an_error_in_the_call_itself_and_the_place_is_free_again():
    def generate(prompt_ids, sampling):
        if not prompt_ids:
            raise LookupError("no prompt")
        return prompt_ids

    engine = SyncEngine(generate)
    with pytest.raises(LookupError, match="no prompt"):
        await steps_of(engine)
    assert await steps_of(engine, [5]) == [[5]]


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError, StopIteration])
@pytest.mark.parametrize("begun", [True, False])
async def test_what_would_end_the_process_ends_the_engine_only(ends, begun):
    def generate(prompt_ids, sampling):
        if not begun:
            raise ends("out")
        return Failing()

    class Failing:
        """An iterator, since a generator makes a RuntimeError of a `StopIteration`."""

        def __init__(self):
            self.left = [5]

        def __iter__(self):
            return self

        def __next__(self):
            if self.left:
                return self.left.pop()
            raise ends("out")

    got = []
    async with aclosing(SyncEngine(generate).generate([], Sampling())) as generated:
        try:
            async for step in generated:
                got += step
        except EngineError as error:
            assert str(error) == f"the engine ended itself: {ends.__name__}: out"
            assert type(error.__cause__) is ends
        else:
            assert begun and ends is StopIteration  # which is how an iterator ends
    assert got == [5] * begun


async def test_an_error_after_closing_is_not_swallowed(monkeypatch):
    reported = []
    monkeypatch.setattr(threading, "excepthook", lambda arguments: reported.append(str(arguments.exc_value)))

    def generate(prompt_ids, sampling):
        try:
            yield from count()
        finally:
            raise OSError("cannot free the cache")

    engine = SyncEngine(generate)
    async with aclosing(engine.generate([], Sampling())) as generated:
        await anext(generated)
    await until(lambda: reported)
    assert reported == ["cannot free the cache"]


# -- back-pressure -----------------------------------------------------------------------------------------------------


async def test_the_thread_waits_for_a_slow_reader():
    endless = Endless()
    async with aclosing(SyncEngine(endless, buffer=4).generate([], Sampling())) as generated:
        await anext(generated)
        await until(lambda: endless.made >= 5)
        await anyio.sleep(0.05)
        # Four in the reader's hands at most, four that wait, and the one that found no room.
        assert endless.made <= 9
    await until(endless.closed.is_set)


# -- closing -----------------------------------------------------------------------------------------------------------


async def test_cancelling_does_not_wait_for_the_step_under_way():
    go_on, closed = threading.Event(), threading.Event()

    def generate(prompt_ids, sampling):
        try:
            yield 1
            go_on.wait(LONG)
            yield 2
        finally:
            closed.set()

    seen = []
    with anyio.fail_after(LONG / 2):
        async with anyio.create_task_group() as group:

            async def read():
                async with aclosing(SyncEngine(generate).generate([], Sampling())) as generated:
                    async for step in generated:
                        seen.append(step)
                        group.cancel_scope.cancel()

            group.start_soon(read)
    assert not closed.is_set()
    go_on.set()
    await until(closed.is_set)
    await until(lambda: not engine_threads())
    assert seen == [[1]]


async def test_a_generator_that_is_never_started_starts_no_thread():
    before = engine_threads()
    generated = SyncEngine(Endless()).generate([], Sampling())
    await generated.aclose()
    assert set(engine_threads()) <= set(before)


# -- turns -------------------------------------------------------------------------------------------------------------


async def test_one_at_a_time_by_default():
    first = Endless()
    calls = iter([first, lambda prompt_ids, sampling: [42]])
    engine = SyncEngine(lambda prompt_ids, sampling: next(calls)(prompt_ids, sampling))
    async with anyio.create_task_group() as group:
        running = engine.generate([], Sampling())
        async with aclosing(running):
            await anext(running)
            results = []

            async def second():
                results.extend(await steps_of(engine))

            group.start_soon(second)
            await anyio.sleep(0.05)
            assert results == []
    assert first.closed.is_set()
    assert results == [[42]]


async def test_closing_while_waiting_for_a_turn_calls_nothing():
    calls = []

    def generate(prompt_ids, sampling):
        calls.append(prompt_ids)
        return count()

    engine = SyncEngine(generate)
    first = engine.generate([1], Sampling())
    async with aclosing(first):
        await anext(first)
        with anyio.move_on_after(0.05):
            await steps_of(engine, [2])
    await until(lambda: not engine_threads())
    assert calls == [[1]]


async def test_who_gives_up_waiting_leaves_no_thread_behind():
    engine = SyncEngine(Endless())
    first = engine.generate([], Sampling())
    async with aclosing(first):
        await anext(first)
        for _ in range(5):
            with anyio.move_on_after(0.01):
                await steps_of(engine)
        await until(lambda: len(engine_threads()) == 1)
        await anext(first)  # and has not disturbed who has the turn


async def test_turns_are_taken_in_the_order_of_the_requests():
    calls = []

    def generate(prompt_ids, sampling):
        calls.append(prompt_ids)
        return prompt_ids

    blocker = Endless()
    engine = SyncEngine(lambda prompt_ids, sampling: (generate if prompt_ids else blocker)(prompt_ids, sampling))
    first = engine.generate([], Sampling())
    async with anyio.create_task_group() as group, aclosing(first):
        await anext(first)
        for number in range(1, 9):
            group.start_soon(steps_of, engine, [number])
            await until(lambda number=number: len(engine_threads()) == number + 1)
    assert calls == [[number] for number in range(1, 9)]


async def test_several_at_a_time_if_asked():
    meeting = threading.Barrier(2, timeout=LONG)

    def generate(prompt_ids, sampling):
        meeting.wait()
        yield from prompt_ids

    engine = SyncEngine(generate, max_concurrency=2)
    results = {}

    async def read(number):
        results[number] = await steps_of(engine, [number])

    async with anyio.create_task_group() as group:
        group.start_soon(read, 1)
        group.start_soon(read, 2)
    assert results == {1: [[1]], 2: [[2]]}


@pytest.mark.parametrize("argument", ["max_concurrency", "buffer"])
def test_bad_arguments(argument):
    with pytest.raises(ValueError, match=f"{argument}=0 is below 1"):
        SyncEngine(Endless(), **{argument: 0})


END_IN_A_STEP = """
import time
from contextlib import aclosing
import anyio
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.engines.sync import SyncEngine

def generate(prompt_ids, sampling):
    try:
        yield 1
        time.sleep(0.3)
        yield 2
    finally:
        print("closed", flush=True)

async def main():
    async with aclosing(SyncEngine(generate).generate([], Sampling())) as steps:
        await anext(steps)

anyio.run(main)
print("ends", flush=True)
"""


def test_the_end_of_the_process_waits_for_the_step_under_way():
    result = subprocess.run(
        [sys.executable, "-c", END_IN_A_STEP], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == ["ends", "closed"]
