"""Long messages are parsed one at a time, with everybody else's work between."""

import asyncio

import pytest

from tokenweir.stream.serve.limits.turns import LONG, Turns

pytestmark = pytest.mark.anyio


async def parse(turns, size, order, name):
    await turns.take(size)
    order.append(name)


async def test_between_two_long_messages_everybody_has_a_turn():
    turns, order = Turns(), []

    async def other():
        while order.count("long") < 20:
            order.append("other")
            await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await asyncio.gather(other(), *(parse(turns, LONG, order, "long") for _ in range(20)))
    assert order.count("long") == 20
    assert "long, long" not in ", ".join(order)


async def test_short_messages_wait_for_none():
    turns, order = Turns(), []
    async with asyncio.timeout(10):
        await asyncio.gather(
            *(parse(turns, LONG, order, "long") for _ in range(5)), parse(turns, LONG - 1, order, "short")
        )
    assert order[0] == "short"


async def test_who_leaves_gives_up_the_turn():
    turns, order = Turns(), []
    tasks = [asyncio.create_task(parse(turns, LONG, order, number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    async with asyncio.timeout(10):
        await asyncio.wait(tasks)
    assert order == [2]
