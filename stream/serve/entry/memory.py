"""Settings of a process that is a server and nothing else: the garbage collector, and glibc's allocator.

An application that mounts the server sets them itself.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc

COLLECT_AFTER = (3_000, 2, 36_000)
"""Thresholds of the garbage collector. Answers leave no cycles, and each collection pauses all of them, for as long as it
takes to follow the objects since the last one of its generation. So the young generations are small, and whole collections
are rare: about one an hour."""
COLLECT_EVERY = 0.05
"""Seconds between two collections of young objects. The first threshold counts allocations less deallocations, so that under
load tens of thousands of young objects wait for one collection of 20 to 60 ms."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Names of glibc's `mallopt`."""
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
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:  # glibc
        for option, value in (
            (M_MMAP_THRESHOLD, LARGE_BLOCK),
            (M_TRIM_THRESHOLD, TRIMMED),
            (M_ARENA_MAX, ARENAS),
        ):
            set_option(option, value)
    _collect_young(loop)


def _collect_young(loop: asyncio.AbstractEventLoop) -> None:
    gc.collect(1)
    loop.call_later(COLLECT_EVERY, _collect_young, loop)
