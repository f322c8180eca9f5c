"""Settings of a process that is a server and nothing else: the garbage collector, and glibc's allocator.

An application that mounts the server sets them itself.
"""

from __future__ import annotations

import asyncio
import gc

from tokenweir.encode.base.platform import set_heap

COLLECT_AFTER = (3_000, 2, 36_000)
"""Thresholds of the garbage collector. Answers leave no cycles, and each collection pauses all of them, for as long as it
takes to follow the objects since the last one of its generation. So the young generations are small, and whole collections
are rare: about one an hour."""
COLLECT_EVERY = 0.05
"""Seconds between two collections of young objects under load. The first threshold counts allocations less deallocations,
so that tens of thousands of young objects would wait for one collection, which takes long."""
COLLECT_IDLE = 2.0
"""The longest interval, on an idle loop: it doubles after each collection that had few objects to look at."""
FEW_YOUNG = 200
"""Number of young objects below which a loop counts as idle; each collection itself makes a few."""
LARGE_BLOCK = 1 << 17
"""Bytes of a block that glibc maps by itself and so returns to the system when it is freed. By default it keeps more and
more of them after the first large one."""
TRIMMED = 1 << 20
"""Free bytes at the end of the heap, above which they are returned."""
ARENAS = 2
"""Heaps of threads. By default each worker thread gets its own, and keeps what its last prompt took."""


def prepare_memory(loop: asyncio.AbstractEventLoop) -> None:
    """Configure the garbage collector and the allocator of a server's process, once everything is loaded.

    All objects that exist are excluded from collections. Young objects are collected regularly by a timer of `loop`.
    """
    gc.collect()
    gc.freeze()  # excludes loaded objects from collections
    gc.set_threshold(*COLLECT_AFTER)
    set_heap(mapped=LARGE_BLOCK, trimmed=TRIMMED, heaps=ARENAS)
    collect_young(loop, COLLECT_EVERY)


def collect_young(loop: asyncio.AbstractEventLoop, interval: float) -> None:
    """Collect young objects now, and again and again by a timer of `loop`.

    Args:
        loop: The event loop.
        interval: Seconds since the last collection. The next one follows sooner if many objects have come, else later.

    """
    is_idle = gc.get_count()[0] < FEW_YOUNG
    gc.collect(1)
    interval = min(2 * interval, COLLECT_IDLE) if is_idle else COLLECT_EVERY
    loop.call_later(interval, collect_young, loop, interval)
