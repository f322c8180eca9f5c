"""The merging hand-off, under asyncio and trio."""

from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenweir.stream.events import Finish, FinishReason, ReasoningDelta, TextDelta
from tokenweir.stream.handoff import MergingHandoff, merge

pytestmark = pytest.mark.anyio


async def test_what_waits_is_merged():
    handoff = MergingHandoff(1000)
    finish = Finish(FinishReason.STOP)
    for delta in (ReasoningDelta("h", [1]), ReasoningDelta("m", [2]), TextDelta("a", [3]), TextDelta("b", [4]), finish):
        await handoff.put(delta)
    handoff.close()
    assert await handoff.take() == [ReasoningDelta("hm", [1, 2]), TextDelta("ab", [3, 4]), finish]
    assert await handoff.take() == []


async def test_the_first_is_taken_alone():
    handoff = MergingHandoff(1000)
    taken = []

    async def reader():
        while deltas := await handoff.take():
            taken.append(deltas)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await anyio.wait_all_tasks_blocked()
        for letter in "abc":
            await handoff.put(TextDelta(letter))
            await anyio.wait_all_tasks_blocked()
        handoff.close()
    assert taken == [[TextDelta("a")], [TextDelta("b")], [TextDelta("c")]]


async def test_a_full_one_holds_the_engine_back():
    handoff = MergingHandoff(4)
    put = 0

    async def engine():
        nonlocal put
        for _ in range(20):
            await handoff.put(TextDelta("xx"))
            put += 1
        handoff.close()

    text = ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine)
        await anyio.wait_all_tasks_blocked()
        assert put == 2
        while deltas := await handoff.take():
            text += deltas[0].text
            await anyio.wait_all_tasks_blocked()
    assert text == "x" * 40


async def test_answers_are_kept_apart():
    deltas = [TextDelta("a", index=0), TextDelta("b", index=1), TextDelta("c", index=1)]
    assert merge(deltas) == [TextDelta("a", index=0), TextDelta("bc", index=1)]


deltas = st.builds(
    lambda kind, text, ids, index: kind(text, ids, index),
    st.sampled_from([TextDelta, ReasoningDelta]),
    st.text(min_size=1, max_size=3),
    st.lists(st.integers(0, 9), max_size=2),
    st.integers(0, 1),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(deltas, max_size=12))
def test_merging_keeps_order_text_and_ids(parts):
    def flat(some):
        return [(type(d), d.index, letter) for d in some for letter in d.text], [i for d in some for i in d.token_ids]

    merged = merge(parts)
    assert flat(merged) == flat(parts)
    assert all((type(one), one.index) != (type(other), other.index) for one, other in pairwise(merged))
