"""Input has a share of each turn of the event loop, and long messages are parsed one at a time."""

import asyncio
from functools import partial

import pytest

from tokenweir.stream.serve.limits.fair_queue import CLIENT
from tokenweir.stream.serve.limits.turns import BYTE, LONG, QUANTUM, REQUEST, SHARE, InputTurns

pytestmark = pytest.mark.anyio


async def parse(turns, size, order, name):
    await turns.take(size)
    order.append(name)


async def test_between_two_long_messages_everybody_has_a_turn():
    turns, order = InputTurns(), []

    async def other():
        while order.count("long") < 20:
            order.append("other")
            await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await asyncio.gather(other(), *(parse(turns, LONG, order, "long") for _ in range(20)))
    assert order.count("long") == 20
    assert "long, long" not in ", ".join(order)


async def test_short_messages_wait_for_none():
    turns, order = InputTurns(), []
    async with asyncio.timeout(10):
        await asyncio.gather(
            *(parse(turns, LONG, order, "long") for _ in range(5)), parse(turns, LONG - 1, order, "short")
        )
    assert order[0] == "short"


async def test_long_messages_of_clients_go_round_robin():
    turns, order = InputTurns(), []

    async def message(client, number):
        CLIENT.set(client)
        await parse(turns, LONG, order, (client, number))

    async with asyncio.timeout(10):
        await asyncio.gather(*(message("greedy", number) for number in range(10)), message("late", 0))
    assert order.index(("late", 0)) == 1


async def test_after_a_long_message_the_loop_does_other_work_for_as_long(monkeypatch):
    turns, order, pauses = InputTurns(), [], []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_later", lambda seconds, call: pauses.append(seconds) or loop.call_soon(call))
    await asyncio.gather(*(parse(turns, size, order, size) for size in (LONG, 10 * LONG)))
    assert pauses == [0.0, LONG * BYTE, 10 * LONG * BYTE]


async def test_who_leaves_gives_up_the_turn():
    turns, order = InputTurns(), []
    tasks = [asyncio.create_task(parse(turns, LONG, order, number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    async with asyncio.timeout(10):
        await asyncio.wait(tasks)
    assert order == [2]


class Loop:
    """Turns whose clock is set by the work, and what was done in each turn of the event loop."""

    def __init__(self):
        self.now = 0.0
        self.turns = InputTurns(clock=lambda: self.now)
        self.done = []
        self._turn = 0
        self._next()

    def _next(self):
        self._turn += 1
        asyncio.get_running_loop().call_soon(self._next)

    def work(self, client, seconds, pieces=1):
        left = [pieces]

        def piece():
            self.now += seconds
            self.done.append((self._turn, client))
            left[0] -= 1
            return left[0] > 0

        return piece

    async def until(self, count):
        async with asyncio.timeout(10):
            while len(self.done) < count:  # noqa: ASYNC110 - counts turns
                await asyncio.sleep(0)


async def test_input_has_a_share_of_each_turn():
    loop = Loop()
    for number in range(40):
        loop.turns.run(f"client {number}", loop.work(number, SHARE / 4))
    await loop.until(40)
    per_turn = [sum(turn == one for turn, _ in loop.done) for one in {turn for turn, _ in loop.done}]
    assert max(per_turn) <= 5  # the last one of them begins before the share is spent


async def test_clients_that_wait_go_round_robin():
    loop = Loop()
    loop.turns.run("greedy", loop.work("greedy", SHARE / 2, pieces=20))
    for _ in range(20):
        loop.turns.run("greedy", loop.work("greedy", SHARE / 2))
    loop.turns.run("late", loop.work("late", SHARE / 2))
    await loop.until(41)
    order = [client for _, client in loop.done]
    assert order.index("late") <= 4  # two pieces before it came, and then one of the other client


async def test_clients_that_wait_have_equal_time():
    """A body of many cheap pieces is not held up by requests, each of which costs as much as a hundred of them."""
    loop = Loop()
    loop.turns.spend(SHARE)
    loop.turns.run("upload", loop.work("upload", QUANTUM / 100, pieces=1000))
    for number in range(100):
        loop.turns.run(f"requests {number % 5}", loop.work("request", QUANTUM))
    await loop.until(1100)
    order = [client for _, client in loop.done]
    uploaded = max(place for place, client in enumerate(order) if client == "upload")
    assert order[:uploaded].count("request") <= 5 * 11


async def test_a_lone_client_waits_for_nobody():
    loop = Loop()
    loop.turns.run("alone", loop.work("alone", SHARE / 10, pieces=9))
    assert len(loop.done) == 9


async def test_a_turn_has_a_piece_however_long():
    loop = Loop()
    loop.turns.run("slow", loop.work("slow", 10 * SHARE, pieces=3))
    await loop.until(3)
    assert len({turn for turn, _ in loop.done}) == 3


async def test_requests_count_by_what_they_begin():
    loop = Loop()
    for _ in range(100):
        loop.turns.run("client", loop.work("client", 0.0), REQUEST)
    assert len(loop.done) == SHARE / REQUEST
    await loop.until(100)


async def test_a_long_message_takes_from_the_turn_in_which_it_is_parsed():
    loop = Loop()
    await loop.turns.take(int(SHARE / BYTE) + 1)
    loop.turns.run("client", loop.work("client", 0.0))
    assert not loop.done
    await loop.until(1)


async def test_work_that_fails_harms_no_other():
    loop, told = Loop(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["exception"]))
    loop.turns.spend(SHARE)
    loop.turns.run("client", partial(int, "x"))
    loop.turns.run("client", loop.work("client", 0.0))
    await loop.until(1)
    assert [type(error) for error in told] == [ValueError]
