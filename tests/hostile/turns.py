"""Event loop that reports its long turns: the CPU time of each, of the loop's thread and of others, by callback.

One turn runs all callbacks that are ready. What is late is behind a long callback, behind very many short ones, or behind
another thread that holds the interpreter.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import defaultdict
from typing import Any

from tokenweir.stream.serve.limits.fair_queue import CLIENT


class WatchedLoop(asyncio.SelectorEventLoop):
    """Event loop that writes a line about each turn above a bound of CPU time to standard error.

    Args:
        bound: Seconds.

    """

    def __init__(self, bound: float) -> None:
        super().__init__()
        self._bound = bound
        self._spent: dict[str, tuple[int, float, float]] = defaultdict(lambda: (0, 0.0, 0.0))
        self._wrapped = asyncio.Handle._run
        loop = self

        def run(handle: asyncio.Handle) -> None:
            name = _name(handle)
            begun = time.thread_time()
            loop._wrapped(handle)
            loop._note(name, time.thread_time() - begun)

        asyncio.Handle._run = run  # type: ignore[method-assign]
        gc.callbacks.append(self._collect)

    def _collect(self, phase: str, told: dict[str, Any]) -> None:
        """Measure the time of a garbage collection, as a callback of `gc.callbacks`."""
        if phase == "start":
            self._collecting = time.thread_time()
            return
        self._note(f"gc {told['generation']}", time.thread_time() - self._collecting)

    def _note(self, name: str, spent: float) -> None:
        count, total, most = self._spent[name]
        self._spent[name] = (count + 1, total + spent, max(most, spent))

    def _run_once(self) -> None:
        self._spent.clear()
        own, all_threads = time.thread_time(), time.process_time()
        super()._run_once()  # type: ignore[misc]
        own, all_threads = time.thread_time() - own, time.process_time() - all_threads
        if all_threads < self._bound:
            return
        dearest = sorted(self._spent.items(), key=lambda item: -item[1][1])[:4]
        told = ", ".join(
            f"{count} × {name} {1000 * spent:.1f} (most {1000 * most:.1f})" for name, (count, spent, most) in dearest
        )
        line = f"turn of {1000 * all_threads:.0f} ms, {1000 * own:.0f} on the loop: {told}"
        print(line, file=sys.stderr, flush=True)


def _name(handle: Any) -> str:
    """Return the name of a callback, or of the coroutine of the task that it runs."""
    call = handle._callback
    task = getattr(call, "__self__", None)
    if isinstance(task, asyncio.Task):
        coroutine: Any = task.get_coro()
        client = handle._context.get(CLIENT, "")
        return f"task {getattr(coroutine, '__qualname__', type(coroutine).__name__)} of {client or 'the server'}"
    return getattr(call, "__qualname__", None) or repr(call)[:60]
