"""Calls that share a timer."""

import asyncio
from time import monotonic

import pytest

from tokenweir.stream.server.answers.pacer import Pacer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_none_comes_too_early_and_all_come_in_order():
    pacer, called, done = Pacer(), [], asyncio.Event()
    now = monotonic()
    for number in range(100):
        pacer.call_at(now + number * 0.0005, lambda number=number: called.append((number, monotonic())))
    pacer.call_at(now + 0.06, done.set)
    async with asyncio.timeout(5):
        await done.wait()
    assert [number for number, _ in called] == list(range(100))
    assert all(at >= now + number * 0.0005 for number, at in called)


async def test_many_calls_are_few_timers(monkeypatch):
    pacer, done = Pacer(), asyncio.Event()
    loop, timers = asyncio.get_running_loop(), []
    later = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda *call: timers.append(call) or later(*call))
    due = monotonic() + 0.01
    for _ in range(1000):
        pacer.call_at(due, done.set)
    assert len(timers) == 1
    async with asyncio.timeout(5):
        await done.wait()
    pacer.call_at(due, done.set)  # a time that is over
    assert len(timers) == 2
