"""A server's process returns what large requests took, and collects garbage in short rounds."""

import gc
import os
import subprocess
import sys

import pytest

from tokenweir.stream.serve.app.memory import COLLECT_EVERY, COLLECT_IDLE, collect_young

PROGRAM = """
import asyncio, gc, threading
from pathlib import Path
from tokenweir.stream.serve.app.memory import prepare_memory

def resident():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0])

{prepare}
before = resident()
kept = []
def use(number):
    blocks = [bytes(1 + number) * (1 << 20) for _ in range(10)]
    kept.append(bytearray(1000))  # what outlives a request, above what it took
for number in (0, 1, 3, 7):
    threads = [threading.Thread(target=use, args=(number,)) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print(resident() - before, gc.get_freeze_count() > 1000, gc.get_threshold()[0])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="Linux tells the memory")
def test_large_blocks_go_back_to_the_system():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(prepare="prepare_memory(asyncio.new_event_loop())")],
        capture_output=True,
        text=True,
        check=True,
    )
    more, frozen, threshold = run.stdout.split()
    assert int(more) < 8 << 10
    assert (frozen, threshold) == ("True", "3000")


CYCLES = """
import asyncio, gc, weakref
from tokenweir.stream.serve.app.memory import prepare_memory

class Cycle:
    def __init__(self):
        self.own = self

async def run():
    prepare_memory(asyncio.get_running_loop())
    gc.set_threshold(0)  # turns collections by allocations off
    for _ in range(3):
        gone = asyncio.Event()
        weakref.finalize(Cycle(), gone.set)
        await gone.wait()

asyncio.run(run())
"""


def test_young_objects_are_collected_again_and_again():
    subprocess.run([sys.executable, "-c", CYCLES], check=True, timeout=60)


class Timer:
    """Event loop that keeps the last timer."""

    def call_later(self, seconds, call, *arguments):
        self.seconds, self.fire = seconds, lambda: call(*arguments)


def test_an_idle_server_sleeps_longer_and_longer():
    loop, intervals = Timer(), []
    gc.disable()
    try:
        collect_young(loop, COLLECT_EVERY)
        for _ in range(10):
            loop.fire()
            intervals.append(loop.seconds)
        assert intervals == sorted(intervals) and intervals[-1] == COLLECT_IDLE
        young = [[] for _ in range(1000)]
        loop.fire()
        assert loop.seconds == COLLECT_EVERY and len(young) == 1000
    finally:
        gc.enable()
