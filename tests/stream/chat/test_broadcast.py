"""The broadcast: one slot, several readers, and bounds with names."""

import anyio
import pytest

from tokenweir.encode.errors import DeliveryError
from tokenweir.stream.chat.broadcast import Broadcast
from tokenweir.stream.chat.replay_buffer import ReplayBuffer
from tokenweir.stream.events.deltas import Finish, FinishReason, TextDelta
from tokenweir.stream.events.merge import DELTA_BYTES, merge

pytestmark = pytest.mark.anyio

LETTER = DELTA_BYTES + 1


def broadcast_of(*, max_ahead=100 * LETTER, max_replay=0, **options):
    return Broadcast.of_deltas(max_ahead=max_ahead, max_replay=max_replay, **options)


async def put_all(broadcast, text):
    for letter in text:
        await broadcast.put(TextDelta(letter))


async def read(broadcast, batches):
    with broadcast.subscribe() as subscription:
        async for batch in subscription:
            batches.append(batch)


async def test_what_waits_is_merged():
    broadcast, finish = broadcast_of(), Finish(FinishReason.STOP)
    await put_all(broadcast, "ab")
    await broadcast.put(finish)
    broadcast.close()
    with broadcast.subscribe() as subscription:
        assert [batch async for batch in subscription] == [[TextDelta("ab"), finish]]
        assert await subscription.take() == []


async def test_a_reader_that_waits_gets_each_delta_at_once():
    broadcast, taken = broadcast_of(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, broadcast, taken)
        await anyio.wait_all_tasks_blocked()
        for letter in "abc":
            await broadcast.put(TextDelta(letter))
            await anyio.wait_all_tasks_blocked()
        broadcast.close()
    assert taken == [[TextDelta("a")], [TextDelta("b")], [TextDelta("c")]]


async def test_a_reader_is_cancelled_even_if_the_end_comes_first():
    broadcast = broadcast_of()

    async def end(scope):
        await anyio.wait_all_tasks_blocked()
        broadcast.close()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope, broadcast.subscribe() as subscription:
            tasks.start_soon(end, scope)
            await subscription.take()
        assert scope.cancelled_caught


async def test_a_reader_cancelled_as_a_delta_comes_leaves_it_to_the_others():
    broadcast, taken = broadcast_of(), []

    async def late(scope):
        await anyio.wait_all_tasks_blocked()
        broadcast.append([TextDelta("x")])
        scope.cancel()
        await read(broadcast, taken)

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope, broadcast.subscribe() as subscription:
            tasks.start_soon(late, scope)
            await subscription.take()
        assert scope.cancelled_caught
        broadcast.close()
    assert taken == [[TextDelta("x")]]


async def test_a_full_slot_holds_the_producer_back():
    broadcast, put = broadcast_of(max_ahead=2 * LETTER), 0

    async def produce():
        nonlocal put
        for _ in range(8):
            await broadcast.put(TextDelta("x"))
            put += 1
        broadcast.close()

    sizes = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        await anyio.wait_all_tasks_blocked()
        assert put == 2
        with broadcast.subscribe() as subscription:
            async for (delta,) in subscription:
                sizes.append(len(delta.text))
                await anyio.wait_all_tasks_blocked()
    assert sizes == [2] * 4


async def test_producers_wait_for_the_fastest_reader_only():
    broadcast = broadcast_of(max_ahead=2 * LETTER, max_replay=1000 * LETTER)
    with broadcast.subscribe() as fast, broadcast.subscribe() as slow:
        for letter in "abcdefghij":
            await broadcast.put(TextDelta(letter))
            assert await fast.take() == [TextDelta(letter)]
        assert await slow.take() == [TextDelta("abcdefghij")]
    with broadcast.subscribe() as late:
        assert await late.take() == [TextDelta("abcdefghij")]
        assert late.position == slow.position == 10


async def test_the_slow_one_numbers_what_it_is_the_first_to_take():
    broadcast = broadcast_of(max_replay=1000 * LETTER)
    with broadcast.subscribe() as one, broadcast.subscribe() as other:
        await put_all(broadcast, "ab")
        assert await one.take() == [TextDelta("ab")]
        await put_all(broadcast, "cd")
        assert await other.take() == [TextDelta("abcd")]
        assert await one.take() == [TextDelta("cd")]
        assert one.position == other.position == 2


async def test_a_reader_too_far_behind_is_cut_off_by_name():
    broadcast = broadcast_of(max_replay=2 * LETTER)
    with broadcast.subscribe() as fast, broadcast.subscribe() as slow:
        for letter in "abc":
            await broadcast.put(TextDelta(letter))
            await fast.take()
        for _ in range(2):
            with pytest.raises(DeliveryError, match="^too far behind: item 0 is no longer kept") as caught:
                await slow.take()
            assert caught.value.outcome == "too_far_behind"
        await put_all(broadcast, "d")
        assert await fast.take() == [TextDelta("d")]
        with pytest.raises(DeliveryError, match="too far behind"):
            broadcast.subscribe(0)
        with pytest.raises(ValueError, match="^there is no item 9 yet; the next is 4$"):
            broadcast.subscribe(9)
        with broadcast.subscribe(fast.position - 2) as again:
            assert await again.take() == [TextDelta("cd")]


async def test_readers_that_take_nothing_are_cut_off_while_the_producer_waits():
    broadcast = broadcast_of(max_ahead=LETTER, stall_timeout=0.05)
    with broadcast.subscribe() as stalled:
        await broadcast.put(TextDelta("a"))
        with anyio.move_on_after(0.15) as waiting:
            await broadcast.put(TextDelta("b"))
        assert waiting.cancelled_caught  # without a reader it keeps waiting
        with pytest.raises(DeliveryError, match=r"^stalled: nothing was taken for 0.05 s$") as caught:
            await stalled.take()
        assert caught.value.outcome == "stalled"
    with broadcast.subscribe() as other:
        assert await other.take() == [TextDelta("a")]


async def test_so_is_one_that_comes_while_the_producer_waits_already():
    broadcast = broadcast_of(max_ahead=LETTER, stall_timeout=0.02)
    await broadcast.put(TextDelta("a"))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(broadcast.put, TextDelta("b"))
            await anyio.wait_all_tasks_blocked()
            with broadcast.subscribe():
                await broadcast.abandoned()
            tasks.cancel_scope.cancel()


async def test_a_slow_reader_is_not_a_stalled_one():
    # The six waits together are longer than the limit, and each is far below it, for a busy machine.
    broadcast = broadcast_of(max_ahead=LETTER, stall_timeout=1)

    async def produce():
        await put_all(broadcast, "abcdef")
        broadcast.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(produce)
        with broadcast.subscribe() as subscription:
            text = ""
            async for (delta,) in subscription:
                text += delta.text
                await anyio.sleep(0.2)
    assert text == "abcdef"


async def test_batches_keep_their_interval_but_the_first_goes_at_once():
    broadcast, got = broadcast_of(), []

    async def read():
        with broadcast.subscribe(interval=0.2) as subscription:
            async for (delta,) in subscription:
                got.append(delta.text)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        for letter in "abc":
            await broadcast.put(TextDelta(letter))
            await anyio.wait_all_tasks_blocked()
        assert got == ["a"]
        broadcast.close()
    assert got == ["a", "bc"]


async def test_what_the_producer_failed_with_comes_to_every_reader_after_the_rest():
    broadcast, failure = broadcast_of(max_replay=1000), KeyError("engine")
    await put_all(broadcast, "a")
    broadcast.close(failure)
    broadcast.close()  # only the first counts
    for _ in range(2):
        with broadcast.subscribe() as subscription:
            assert await subscription.take() == [TextDelta("a")]
            with pytest.raises(KeyError, match="engine"):
                await subscription.take()


async def test_a_closed_view_gives_no_more():
    broadcast = broadcast_of()
    await put_all(broadcast, "a")
    with broadcast.subscribe() as subscription:
        pass
    with pytest.raises(DeliveryError, match="^this subscription is closed$") as caught:
        await subscription.take()
    assert caught.value.outcome == "closed"


async def test_items_can_be_other_than_deltas():
    texts = ReplayBuffer(0, list, len)
    broadcast = Broadcast(texts, lambda deltas: [delta.text for delta in merge(deltas)], max_ahead=1000)
    await put_all(broadcast, "ab")
    broadcast.append(["the end"])
    broadcast.close()
    with broadcast.subscribe() as subscription:
        assert [batch async for batch in subscription] == [["ab", "the end"]]


async def test_a_producer_that_never_waits_lets_the_reader_in():
    broadcast, got = broadcast_of(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, broadcast, got)
        await anyio.wait_all_tasks_blocked()
        for _ in range(100_000):
            await broadcast.put(TextDelta("a"))
            if len(got) >= 2:
                break
        assert len(got) >= 2
        broadcast.close()


async def test_abandoned():
    broadcast = broadcast_of()
    with anyio.move_on_after(0.03) as waiting:
        await broadcast.abandoned()
    assert waiting.cancelled_caught  # no reader so far
    with broadcast.subscribe():
        pass
    done = anyio.Event()

    async def wait():
        await broadcast.abandoned(0.1)
        done.set()

    async with anyio.create_task_group() as tasks:
        with broadcast.subscribe():
            tasks.start_soon(wait)
            await anyio.sleep(0.03)
        await anyio.sleep(0.03)
        with broadcast.subscribe():
            await anyio.sleep(0.15)
            assert not done.is_set()
        with anyio.fail_after(5):
            await done.wait()


async def test_a_listener_is_called_at_once_and_takes_without_waiting():
    broadcast, taken = broadcast_of(), []
    subscription = broadcast.subscribe()
    subscription.listen(lambda: taken.append(subscription.take_now()))
    for letter in "ab":
        broadcast.add(TextDelta(letter))
    assert taken == [[TextDelta("a")], [TextDelta("b")]] and not subscription.ready and not subscription.ended
    assert broadcast.pending_bytes == 0
    broadcast.close()
    assert taken[2:] == [[]] and subscription.ready and subscription.ended


async def test_one_listener_may_leave_while_all_are_called():
    broadcast, taken = broadcast_of(max_replay=100 * LETTER), []
    first, second = broadcast.subscribe(), broadcast.subscribe()
    first.listen(first.close)
    second.listen(lambda: taken.append(second.take_now()))
    broadcast.add(TextDelta("a"))
    broadcast.add(TextDelta("b"))
    assert taken == [[TextDelta("a")], [TextDelta("b")]]
    with pytest.raises(DeliveryError, match="closed"):
        first.take_now()


async def test_a_listener_is_told_the_failure():
    broadcast, failures = broadcast_of(), []

    def read():
        try:
            subscription.take_now()
        except ValueError as error:
            failures.append(error)

    subscription = broadcast.subscribe()
    subscription.listen(read)
    broadcast.add(TextDelta("a"))
    broadcast.close(ValueError("over"))
    assert [str(error) for error in failures] == ["over"]
