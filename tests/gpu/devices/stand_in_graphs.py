"""Streams, events, memory and graphs of the stand-in for CuPy.

All streams are one: a call ends when its work is done. While a stream is captured, work is noted and not done. Then, as with
CUDA and CuPy, nothing is copied from the host or to it, nobody waits, and no module is loaded; and, which is stricter than
CuPy, no other stream is used, and memory comes from what a pool already has.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from noise import noise

_ALIGNMENT = 512  # of what CuPy's pools hand out

thread = threading.local()


def _streams() -> list[Stream]:
    if not hasattr(thread, "streams"):
        thread.streams = [Stream()]
    return thread.streams


def current_stream() -> Stream:
    """Return this thread's current stream."""
    return _streams()[-1]


def check_not_capturing(what: str) -> None:
    """Raise `RuntimeError` if the current stream is being captured; `what` names the operation."""
    if current_stream().tape is not None:
        raise RuntimeError(f"the current stream is capturing, so {what} are disallowed")


def do(act: Callable[[], Any]) -> None:
    """Call `act`, or append it to the tape while the current stream is being captured."""
    tape = current_stream().tape
    if tape is None:
        act()
    else:
        tape.append(act)


class Event:
    """Stand-in for a CUDA event, which is done as soon as it is recorded; `uses` lists what streams did with events."""

    uses: ClassVar[list[tuple[str, Event]]] = []

    ptr = 0

    def __init__(self, **_: Any) -> None: ...

    def record(self, _stream: Any = None) -> None:
        check_not_capturing("events")
        Event.uses.append(("record", self))

    def synchronize(self) -> None:
        check_not_capturing("synchronizations")


class Stream:
    """Stand-in for a CUDA stream, which is the thread's current one while entered."""

    ptr = 0

    def __init__(self, **_: Any) -> None:
        self.tape: list[Callable[[], Any]] | None = None

    def synchronize(self) -> None:
        check_not_capturing("synchronizations")

    def wait_event(self, event: Event) -> None:
        check_not_capturing("events")
        Event.uses.append(("wait", event))

    def begin_capture(self) -> None:
        if self is not current_stream() or len(_streams()) == 1:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        self.tape = []

    def end_capture(self) -> Graph:
        graph, self.tape = Graph(self.tape), None
        return graph

    def __enter__(self) -> Self:
        check_not_capturing("other streams")
        _streams().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _streams().pop()


class Graph:
    """Stand-in for a CUDA graph: the calls that a capture has recorded."""

    def __init__(self, tape: list[Callable[[], Any]]) -> None:
        self._tape = tape

    def launch(self, _stream: Stream) -> None:
        check_not_capturing("launches of graphs")
        for act in self._tape:
            act()


class MemoryPool:
    """Pool of device memory that reuses a block once the last array over it is freed."""

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []

    def malloc(self, size: int) -> np.ndarray:
        rounded = max(-(-size // _ALIGNMENT), 1) * _ALIGNMENT
        memory = next((one for one in self._free if len(one) == rounded), None)
        if memory is None:
            check_not_capturing("allocations")
            memory = _memory(rounded)
        else:
            self._free = [one for one in self._free if one is not memory]
        lent = np.frombuffer((ctypes.c_uint8 * rounded).from_address(memory.ctypes.data), np.uint8)
        weakref.finalize(lent, self._free.append, memory)
        return lent[:size]


@contextmanager
def using_allocator(allocator: Callable[[int], np.ndarray]) -> Iterator[None]:
    """Use `allocator` for this thread's device memory inside the context."""
    thread.allocator = allocator
    try:
        yield
    finally:
        thread.allocator = None


def take(size: int) -> np.ndarray:
    """Return `size` bytes of device memory, from this thread's allocator if it has one."""
    allocator = getattr(thread, "allocator", None)
    if allocator is None:
        check_not_capturing("allocations")
        return _memory(size)
    return allocator(size)


def _memory(size: int) -> np.ndarray:
    memory = noise(size + _ALIGNMENT, size)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size]
