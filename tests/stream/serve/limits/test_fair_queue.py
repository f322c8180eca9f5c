"""The order in which work gets places, the refusals, and that no place is lost."""

import asyncio
import contextvars
import random
import sys
import threading

import pytest

from tokenweir.stream.prompts.batching.worker_thread import run_in_thread
from tokenweir.stream.serve.limits import fair_queue
from tokenweir.stream.serve.limits.fair_queue import CLIENT, LARGE, FairQueue
from tokenweir.stream.serve.wire.shared.errors import RequestError

pytestmark = pytest.mark.anyio


class Crowd:
    """Work of several clients, each piece of which ends when it is told to."""

    def __init__(self, places=1, max_waiting=100, max_waiting_cost=1 << 40, timeout=60):
        self.queue = FairQueue(places, max_waiting=max_waiting, max_waiting_cost=max_waiting_cost, timeout=timeout)
        self.begun, self.refused, self.ends, self.tasks = [], [], {}, {}

    async def come(self, client, name, cost):
        self.start(client, name, cost)
        await self.settle()

    def start(self, client, name, cost):
        context = contextvars.copy_context()
        context.run(CLIENT.set, client)
        self.ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.get_running_loop().create_task(self._work(name, cost), context=context)

    async def _work(self, name, cost):
        try:
            async with self.queue.place(cost):
                self.begun.append(name)
                await self.ends[name].wait()
        except RequestError as error:
            self.refused.append(name)
            assert (error.status, error.code, error.retry_after) == (503, "server_overloaded", 1)

    async def end(self, name):
        self.ends[name].set()
        await self.settle()

    async def end_all(self):
        for number in range(len(self.tasks)):
            if number < len(self.begun):
                await self.end(self.begun[number])
        await asyncio.wait(self.tasks.values())

    async def settle(self):
        for _ in range(5):
            await asyncio.sleep(0)


async def test_a_light_client_does_not_wait_for_the_backlog_of_heavy_ones():
    crowd = Crowd()
    for client in range(20):
        for number in range(3):
            await crowd.come(f"heavy {client}", f"heavy {client}.{number}", 1 << 20)
    await crowd.come("light", "light", 1000)
    await crowd.end("heavy 0.0")
    assert crowd.begun == ["heavy 0.0", "light"]
    await crowd.end_all()
    begun = dict.fromkeys(range(20), 0)
    for name in crowd.begun[2:]:  # clients take turns, at most two pieces apart
        begun[int(name.split()[1].split(".")[0])] += 1
        assert max(begun.values()) - min(begun.values()) <= 2


async def test_clients_share_by_cost_and_not_by_number():
    crowd = Crowd()
    await crowd.come("x", "first", 1)
    for number in range(40):
        await crowd.come("small", f"small {number}", 100)
    for number in range(4):
        await crowd.come("large", f"large {number}", 1000)
    await crowd.end_all()
    half = crowd.begun[1:23]
    assert sum(name.startswith("large") for name in half) == 2
    assert sum(name.startswith("small") for name in half) == 20


async def test_large_work_leaves_a_place():
    crowd = Crowd(places=3)
    for number in range(4):
        await crowd.come(f"heavy {number}", f"heavy {number}", LARGE)
    assert crowd.begun == ["heavy 0", "heavy 1"]
    await crowd.come("light", "light", LARGE - 1)
    assert crowd.begun == ["heavy 0", "heavy 1", "light"]
    await crowd.end("light")
    assert len(crowd.begun) == 3
    await crowd.end("heavy 1")
    assert crowd.begun[3:] == ["heavy 2"]
    await crowd.end_all()


async def test_a_clients_large_work_is_not_before_its_small():
    crowd = Crowd()
    for number in range(3):
        await crowd.come("a", f"large {number}", LARGE)
    await crowd.come("a", "small", 10)
    await crowd.end("large 0")
    assert crowd.begun == ["large 0", "small"]
    await crowd.end_all()


async def test_the_only_place_is_for_large_work_too():
    crowd = Crowd(places=1)
    await crowd.come("a", "large", LARGE)
    assert crowd.begun == ["large"]
    await crowd.end_all()


@pytest.mark.parametrize("bounds", [{"max_waiting": 3}, {"max_waiting_cost": 3000}])
async def test_the_client_with_the_largest_backlog_is_refused(bounds):
    crowd = Crowd(**bounds)
    await crowd.come("x", "first", 1)
    for number in range(4):
        await crowd.come("greedy", f"greedy {number}", 1000)
    assert crowd.refused == ["greedy 3"]
    await crowd.come("modest", "modest", 1000)
    assert crowd.refused == ["greedy 3", "greedy 2"]
    await crowd.end_all()
    assert sorted(crowd.begun) == ["first", "greedy 0", "greedy 1", "modest"]


async def test_work_above_the_bound_may_wait_alone():
    crowd = Crowd(max_waiting_cost=100)
    await crowd.come("a", "first", 1)
    await crowd.come("a", "large", 1000)
    assert not crowd.refused
    await crowd.end_all()
    assert crowd.begun == ["first", "large"]


async def test_who_waits_too_long_is_refused():
    crowd = Crowd(timeout=0.01)
    await crowd.come("a", "first", 1)
    await crowd.come("b", "second", 1)
    await asyncio.wait([crowd.tasks["second"]])
    assert crowd.refused == ["second"]
    await crowd.end_all()
    await crowd.come("b", "third", 1)
    assert crowd.begun == ["first", "third"]
    await crowd.end_all()


async def test_no_place_is_lost_whoever_leaves_and_when():
    rng = random.Random(0)
    crowd = Crowd(places=3, max_waiting=10, max_waiting_cost=20 * LARGE)
    for number in range(2000):
        await crowd.come(f"client {rng.randrange(5)}", number, rng.choice([1, LARGE // 2, LARGE, 4 * LARGE]))
        for _ in range(rng.randrange(3)):
            live = [name for name, task in crowd.tasks.items() if not task.done()]
            if live and rng.random() < 0.6:
                crowd.ends[rng.choice(live)].set()
            if live and rng.random() < 0.4:
                crowd.tasks[rng.choice(live)].cancel()
        for name in [name for name, task in crowd.tasks.items() if task.done()]:
            del crowd.tasks[name]
    for task in crowd.tasks.values():
        task.cancel()
    await asyncio.wait(crowd.tasks.values())
    queue = crowd.queue
    assert (queue._free, queue._free_large, queue._waiting) == (3, 2, [])
    assert crowd.begun and crowd.refused


async def test_threads_switch_more_often_only_while_there_is_work():
    usual, seen = sys.getswitchinterval(), []
    queue = FairQueue(2, max_waiting=2, max_waiting_cost=100, timeout=60)
    async with queue.place(1):
        async with queue.place(1):
            seen.append(sys.getswitchinterval())
        seen.append(sys.getswitchinterval())
    assert seen == pytest.approx([fair_queue.SWITCH_INTERVAL] * 2, rel=0.01)
    assert sys.getswitchinterval() == usual


async def test_work_cancelled_in_the_same_turn_costs_no_other_its_place():
    """The greediest client's last work is cancelled, but its task has not run yet when the queue is found to be full."""
    crowd = Crowd(max_waiting=2)
    for name in ("first", "second", "third"):
        await crowd.come("greedy", name, 10)
    crowd.start("light", "light", 10)
    crowd.tasks["third"].cancel()
    await crowd.settle()
    assert crowd.tasks["third"].cancelled()
    await crowd.end("first")
    await crowd.come("light", "last", 10)
    await crowd.end_all()
    assert sorted(crowd.begun) == ["first", "last", "light", "second"]
    assert crowd.refused == []


async def test_a_place_is_held_until_its_thread_has_ended():
    """A thread cannot be interrupted: a client that leaves must not make room for another one beside it."""
    queue = FairQueue(1, max_waiting=9, max_waiting_cost=1 << 40, timeout=60)
    begun, end, usual = threading.Event(), threading.Event(), sys.getswitchinterval()
    second_begun = asyncio.Event()

    def work():
        begun.set()
        end.wait()

    async def first():
        async with queue.place(10):
            await run_in_thread(work)

    async def second():
        async with queue.place(10):
            second_begun.set()

    leaving, waiting = asyncio.ensure_future(first()), asyncio.ensure_future(second())
    await asyncio.to_thread(begun.wait)
    leaving.cancel()
    await asyncio.wait({leaving})
    assert leaving.cancelled()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not second_begun.is_set() and sys.getswitchinterval() < usual
    end.set()
    await waiting
    assert second_begun.is_set() and sys.getswitchinterval() == usual


def test_threads_that_outlive_the_event_loop_leave_no_trace():
    begun, end, usual = threading.Event(), threading.Event(), sys.getswitchinterval()
    ended = []

    def work():
        begun.set()
        end.wait()

    async def leave():
        queue, started = FairQueue(1, max_waiting=9, max_waiting_cost=9, timeout=60), []

        async def first():
            async with queue.place(1):
                started.append(fair_queue.STARTED.get())
                await run_in_thread(work)

        leaving = asyncio.ensure_future(first())
        await asyncio.to_thread(begun.wait)
        leaving.cancel()
        await asyncio.wait({leaving})
        ended.extend(started[0])

    asyncio.run(leave())
    assert sys.getswitchinterval() < usual
    callbacks = threading.Event()
    ended[0].add_done_callback(lambda _: callbacks.set())  # behind that of the queue
    end.set()
    callbacks.wait()
    assert sys.getswitchinterval() == usual
