"""The hand-off: one slot, several readers, and bounds with names."""

import anyio
import pytest

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.delivery.broadcast import Handoff
from tokenweir.stream.delivery.merge import DELTA_BYTES, merge, size_of
from tokenweir.stream.delivery.replay_buffer import ReplayBuffer
from tokenweir.stream.events import Finish, FinishReason, TextDelta

pytestmark = pytest.mark.anyio

LETTER = DELTA_BYTES + 1


def handoff_of(*, max_ahead=100 * LETTER, max_replay=0, **options):
    return Handoff(ReplayBuffer(max_replay, merge, size_of), merge, max_ahead=max_ahead, **options)


async def put_all(handoff, text):
    for letter in text:
        await handoff.put(TextDelta(letter))


async def read(handoff, batches):
    with handoff.view() as view:
        async for batch in view:
            batches.append(batch)


async def test_what_waits_is_merged():
    handoff, finish = handoff_of(), Finish(FinishReason.STOP)
    await put_all(handoff, "ab")
    await handoff.put(finish)
    handoff.close()
    with handoff.view() as view:
        assert [batch async for batch in view] == [[TextDelta("ab"), finish]]
        assert await view.take() == []


async def test_a_reader_that_waits_gets_each_delta_at_once():
    handoff, taken = handoff_of(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, handoff, taken)
        await anyio.wait_all_tasks_blocked()
        for letter in "abc":
            await handoff.put(TextDelta(letter))
            await anyio.wait_all_tasks_blocked()
        handoff.close()
    assert taken == [[TextDelta("a")], [TextDelta("b")], [TextDelta("c")]]


async def test_a_reader_is_cancelled_even_if_the_end_comes_first():
    handoff = handoff_of()

    async def end(scope):
        await anyio.wait_all_tasks_blocked()
        handoff.close()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope, handoff.view() as view:
            tasks.start_soon(end, scope)
            await view.take()
        assert scope.cancelled_caught


async def test_a_reader_cancelled_as_a_delta_comes_leaves_it_to_the_others():
    handoff, taken = handoff_of(), []

    async def late(scope):
        await anyio.wait_all_tasks_blocked()
        handoff.append([TextDelta("x")])
        scope.cancel()
        await read(handoff, taken)

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope, handoff.view() as view:
            tasks.start_soon(late, scope)
            await view.take()
        assert scope.cancelled_caught
        handoff.close()
    assert taken == [[TextDelta("x")]]


async def test_a_full_slot_holds_the_producer_back():
    handoff, put = handoff_of(max_ahead=2 * LETTER), 0

    async def produce():
        nonlocal put
        for _ in range(8):
            await handoff.put(TextDelta("x"))
            put += 1
        handoff.close()

    sizes = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        await anyio.wait_all_tasks_blocked()
        assert put == 2
        with handoff.view() as view:
            async for (delta,) in view:
                sizes.append(len(delta.text))
                await anyio.wait_all_tasks_blocked()
    assert sizes == [2] * 4


async def test_producers_wait_for_the_fastest_reader_only():
    handoff = handoff_of(max_ahead=2 * LETTER, max_replay=1000 * LETTER)
    with handoff.view() as fast, handoff.view() as slow:
        for letter in "abcdefghij":
            await handoff.put(TextDelta(letter))
            assert await fast.take() == [TextDelta(letter)]
        assert await slow.take() == [TextDelta("abcdefghij")]
    with handoff.view() as late:
        assert await late.take() == [TextDelta("abcdefghij")]
        assert late.position == slow.position == 10


async def test_the_slow_one_numbers_what_it_is_the_first_to_take():
    handoff = handoff_of(max_replay=1000 * LETTER)
    with handoff.view() as one, handoff.view() as other:
        await put_all(handoff, "ab")
        assert await one.take() == [TextDelta("ab")]
        await put_all(handoff, "cd")
        assert await other.take() == [TextDelta("abcd")]
        assert await one.take() == [TextDelta("cd")]
        assert one.position == other.position == 2


async def test_a_reader_too_far_behind_is_cut_off_by_name():
    handoff = handoff_of(max_replay=2 * LETTER)
    with handoff.view() as fast, handoff.view() as slow:
        for letter in "abc":
            await handoff.put(TextDelta(letter))
            await fast.take()
        for _ in range(2):
            with pytest.raises(DeliveryError, match="^too far behind: item 0 is no longer kept") as caught:
                await slow.take()
            assert caught.value.outcome == "too_far_behind"
        await put_all(handoff, "d")
        assert await fast.take() == [TextDelta("d")]
        with pytest.raises(DeliveryError, match="too far behind"):
            handoff.view(0)
        with pytest.raises(ValueError, match="^there is no item 9 yet; the next is 4$"):
            handoff.view(9)
        with handoff.view(fast.position - 2) as again:
            assert await again.take() == [TextDelta("cd")]


async def test_readers_that_take_nothing_are_cut_off_while_the_producer_waits():
    handoff = handoff_of(max_ahead=LETTER, stall_timeout=0.05)
    with handoff.view() as stalled:
        await handoff.put(TextDelta("a"))
        with anyio.move_on_after(0.15) as waiting:
            await handoff.put(TextDelta("b"))
        assert waiting.cancelled_caught  # nobody reads, so it waits on
        with pytest.raises(DeliveryError, match=r"^stalled: nothing was taken for 0.05 s$") as caught:
            await stalled.take()
        assert caught.value.outcome == "stalled"
    with handoff.view() as other:
        assert await other.take() == [TextDelta("a")]


async def test_so_is_one_that_comes_while_the_producer_waits_already():
    handoff = handoff_of(max_ahead=LETTER, stall_timeout=0.02)
    await handoff.put(TextDelta("a"))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(handoff.put, TextDelta("b"))
            await anyio.wait_all_tasks_blocked()
            with handoff.view():
                await handoff.abandoned()
            tasks.cancel_scope.cancel()


async def test_a_slow_reader_is_not_a_stalled_one():
    handoff = handoff_of(max_ahead=LETTER, stall_timeout=0.1)

    async def produce():
        await put_all(handoff, "abcdef")
        handoff.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        with handoff.view() as view:
            text = ""
            async for (delta,) in view:
                text += delta.text
                await anyio.sleep(0.04)
    assert text == "abcdef"


async def test_batches_keep_their_interval_but_the_first_goes_at_once():
    handoff, got = handoff_of(), []

    async def read():
        with handoff.view(interval=0.2) as view:
            async for (delta,) in view:
                got.append(delta.text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        for letter in "abc":
            await handoff.put(TextDelta(letter))
            await anyio.wait_all_tasks_blocked()
        assert got == ["a"]
        handoff.close()
    assert got == ["a", "bc"]


async def test_what_the_producer_failed_with_comes_to_every_reader_after_the_rest():
    handoff, failure = handoff_of(max_replay=1000), KeyError("engine")
    await put_all(handoff, "a")
    handoff.close(failure)
    handoff.close()  # only the first counts
    for _ in range(2):
        with handoff.view() as view:
            assert await view.take() == [TextDelta("a")]
            with pytest.raises(KeyError, match="engine"):
                await view.take()


async def test_a_closed_view_gives_no_more():
    handoff = handoff_of()
    await put_all(handoff, "a")
    with handoff.view() as view:
        pass
    with pytest.raises(DeliveryError, match="^this view is closed$") as caught:
        await view.take()
    assert caught.value.outcome == "closed"


async def test_items_can_be_other_than_deltas():
    texts = ReplayBuffer(0, list, len)
    handoff = Handoff(texts, lambda deltas: [delta.text for delta in merge(deltas)], max_ahead=1000)
    await put_all(handoff, "ab")
    handoff.append(["the end"])
    handoff.close()
    with handoff.view() as view:
        assert [batch async for batch in view] == [["ab", "the end"]]


async def test_a_producer_that_never_waits_lets_the_reader_in():
    handoff, got = handoff_of(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, handoff, got)
        await anyio.wait_all_tasks_blocked()
        for _ in range(100_000):
            await handoff.put(TextDelta("a"))
            if len(got) == 2:
                break
        assert len(got) == 2
        handoff.close()


async def test_abandoned():
    handoff = handoff_of()
    with anyio.move_on_after(0.03) as waiting:
        await handoff.abandoned()
    assert waiting.cancelled_caught  # there has been nobody yet
    with handoff.view():
        pass
    done = anyio.Event()

    async def wait():
        await handoff.abandoned(0.1)
        done.set()

    async with anyio.create_task_group() as tasks:
        with handoff.view():
            tasks.start_soon(wait)
            await anyio.sleep(0.03)
        await anyio.sleep(0.03)
        with handoff.view():
            await anyio.sleep(0.15)
            assert not done.is_set()
        with anyio.fail_after(5):
            await done.wait()
