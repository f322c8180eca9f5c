"""Calls that share a timer, and an interval that grows with the load."""

import asyncio
from time import monotonic
from types import SimpleNamespace

import pytest
from case_tables import cases

from tokenweir.stream.serve.answers import pacer as pacer_module
from tokenweir.stream.serve.answers.pacer import (
    FULL_LOAD,
    HIGH_LOAD,
    LOAD_WINDOW,
    LOW_LOAD,
    RELAXED_FACTOR,
    SAMPLE_INTERVAL,
    Pacer,
)

CASES = cases(__file__)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_none_comes_too_early_and_none_is_lost():
    pacer, called, done = Pacer(), [], asyncio.Event()

    def call(number):
        called.append((number, monotonic()))
        if len(called) == 100:
            done.set()

    now = monotonic()
    for number in range(100):
        pacer.call_at(now + number * 0.0005, lambda number=number: call(number))
    async with asyncio.timeout(5):
        await done.wait()
    # Timers that a busy machine sets late change places.
    assert sorted(number for number, _ in called) == list(range(100))
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


def settled(pacer, load):
    """The interval after a while at one load."""
    for _ in range(1000):
        pacer.observe(load)
    return pacer.interval


def test_the_interval_is_steady_between_the_load_that_is_easy_and_the_one_that_is_too_much():
    pacer = Pacer(0.01, 0.1)
    few = RELAXED_FACTOR * 0.01
    assert pacer.interval == 0.01
    assert settled(pacer, HIGH_LOAD - 0.01) == 0.01
    assert settled(pacer, HIGH_LOAD + 0.01) == pytest.approx(settled(pacer, FULL_LOAD)) == pytest.approx(few)
    assert settled(pacer, (FULL_LOAD + 1) / 2) == pytest.approx((few + 0.1) / 2)
    assert settled(pacer, 3.0) == pytest.approx(0.1)
    assert settled(Pacer(0.05, 0.06), FULL_LOAD) == pytest.approx(0.06)  # never longer than asked for


def test_longer_frames_that_took_the_load_away_stay():
    pacer = Pacer(0.01, 0.1)
    settled(pacer, FULL_LOAD)
    assert settled(pacer, LOW_LOAD + 0.01) == pytest.approx(RELAXED_FACTOR * 0.01)
    assert settled(pacer, LOW_LOAD - 0.01) == 0.01
    assert settled(pacer, HIGH_LOAD - 0.01) == 0.01


def test_one_pause_changes_nothing_and_a_long_one_counts_for_its_length():
    pacer = Pacer(0.01, 0.1)
    few = settled(pacer, (HIGH_LOAD + FULL_LOAD) / 2)
    pacer.observe(3.0)
    assert pacer.interval == few
    pacer.observe(3.0, LOAD_WINDOW)
    assert pacer.interval == pytest.approx(0.1)


def test_a_worker_is_busy_while_it_is_full():
    pacer = Pacer(0.01, 0.1)
    settled(pacer, FULL_LOAD - 0.01)
    assert not pacer.busy
    settled(pacer, 1.0)
    assert pacer.busy
    pacer.stop()
    assert not pacer.busy
    pacer = Pacer(0.2, 0.2)
    settled(pacer, 1.0)
    assert not pacer.busy  # a long wait that was asked for says nothing of the load


def test_without_a_shortest_interval_there_is_none():
    assert settled(Pacer(0.0, 0.1), 3.0) == 0.0


def test_a_longest_interval_below_the_shortest_is_none():
    assert settled(Pacer(0.2, 0.1), 1.0) == 0.2


class Loop:
    """An event loop as a pacer sees it: scheduled samples, and a clock."""

    def __init__(self, monkeypatch):
        self.now = self.worked = self.waited = 0.0
        self.timers = []
        monkeypatch.setattr(pacer_module, "monotonic", lambda: self.now)
        monkeypatch.setattr(pacer_module, "thread_time", lambda: self.worked)
        monkeypatch.setattr(pacer_module, "thread_wait", lambda: self.waited)
        monkeypatch.setattr(pacer_module, "asyncio", SimpleNamespace(get_running_loop=lambda: self))

    def call_later(self, delay, call):
        self.timers.append((self.now + delay, call))
        return self

    def cancel(self):
        self.timers.clear()

    def go_on(self, work, late=0.0, wait=0.0):
        [(when, call)] = self.timers
        self.timers.clear()
        self.now, self.worked, self.waited = when + late, self.worked + work, self.waited + wait
        call()


@pytest.mark.parametrize(
    ("work", "late", "busy"),
    CASES["the_load_is_what_the_loop_works_and_what_it_is_late"],
    ids=["idle", "working", "kept from working"],
)
def test_the_load_is_what_the_loop_works_and_what_it_is_late(monkeypatch, work, late, busy):
    loop, pacer = Loop(monkeypatch), Pacer(0.01, 0.1)
    pacer.start()
    pacer.start()  # a second stream; one look is enough
    for _ in range(100):
        loop.go_on(work, late)
    assert (pacer.interval > 0.012) is busy
    pacer.stop()
    assert loop.timers == [] and pacer.interval == 0.01


@pytest.mark.parametrize(
    ("work", "late", "input_", "busy"),
    [(0.95, 0.0, 0.7, False), (2.0, 1.0, 1.9, False), (1.7, 1.0, 0.7, True)],
    ids=["input", "late by input", "late by answers"],
)
def test_what_clients_send_makes_no_tokens_late(monkeypatch, work, late, input_, busy):
    loop, spent = Loop(monkeypatch), [0.0]
    pacer = Pacer(0.01, 0.1, lambda: spent[0])
    pacer.start()
    for _ in range(100):
        spent[0] += input_ * SAMPLE_INTERVAL
        loop.go_on(work * SAMPLE_INTERVAL, late * SAMPLE_INTERVAL)
    assert (pacer.interval > 0.012) is busy


@pytest.mark.parametrize(("input_", "busy"), [(0.0, True), (0.4, False)], ids=["answers", "input"])
def test_a_quota_of_half_a_core_makes_half_of_the_work_a_full_load(monkeypatch, input_, busy):
    loop, spent = Loop(monkeypatch), [0.0]
    pacer = Pacer(0.01, 0.1, lambda: spent[0])
    pacer.start()
    for _ in range(100):
        spent[0] += input_ * SAMPLE_INTERVAL
        loop.go_on(0.45 * SAMPLE_INTERVAL, wait=0.45 * SAMPLE_INTERVAL)
    assert pacer.busy is busy
