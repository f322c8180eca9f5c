"""Adapter that runs a blocking generator as an engine, in its own thread."""

from __future__ import annotations

import atexit
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextvars import copy_context
from itertools import islice
from threading import Condition, Thread, current_thread

import anyio
from anyio import to_thread

from tokenweir.encode.errors import EngineError
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

Step = Sequence[int] | EngineStep

EXIT_PATIENCE = 5.0
"""Seconds that process exit waits for running steps."""


class SyncEngine:
    """Engine that runs a blocking generator of ids in a thread.

    One thread carries one generation from start to end, so thread-local state such as `torch.inference_mode` holds.
    Backpressure: the thread waits while the buffer has `buffer` steps. The reader takes all buffered steps at once.

    Closing returns at once. Python cannot interrupt a step, so the running step finishes and its result is dropped.
    Then the blocking generator is closed in its own thread, and its slot becomes free. Process exit waits for that too,
    for at most 5 seconds.

    Attributes:
        max_concurrency: Most concurrent generations.
        buffer: Most steps that are buffered for the reader.

    """

    def __init__(
        self,
        generate: Callable[[Sequence[int], Sampling], Iterable[int | Step]],
        *,
        max_concurrency: int = 1,
        buffer: int = 16,
    ) -> None:
        """Make an engine from a function.

        Args:
            generate: Called in the thread with the prompt's ids and the sampling; returns an iterable of ids, of
                sequences of ids, or of `EngineStep`. Its `close()`, if any, is always called at the end.
            max_concurrency: Most concurrent generations; more wait in a queue. Few models may be called from two
                threads at once, so the default is 1.
            buffer: Most steps to buffer for the reader.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: `max_concurrency` or `buffer` is below 1.

        """
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency={max_concurrency} is below 1")
        if buffer < 1:
            raise ValueError(f"buffer={buffer} is below 1")
        self.max_concurrency = max_concurrency
        self.buffer = buffer
        self._generate = generate
        self._line: list[_HandOff] = []  # FIFO: the first `max_concurrency` generate, the others wait
        self._moved = Condition()

    def __repr__(self) -> str:
        return f"SyncEngine({self._generate}, max_concurrency={self.max_concurrency})"

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Step, None]:
        """Generate from `prompt_ids` under asyncio or trio.

        Errors of the blocking generator are raised here, after the steps before them. `SystemExit` and similar errors,
        which would end the reader's process, become `EngineError`. Errors after this generator is closed go to
        `threading.excepthook`.
        """
        steps = _HandOff(self.buffer)
        # A daemon thread: an engine that hangs in a step must not block process exit.
        thread = Thread(
            target=copy_context().run,
            args=(self._produce, prompt_ids, sampling, steps),
            name="tokenweir-engine",
            daemon=True,
        )
        thread.start()
        # The reader waits in another thread, from anyio's pool. Waking the event loop from the engine's thread would be
        # cheaper, but would make that thread depend on a running loop.
        waiting = anyio.CapacityLimiter(1)
        try:
            while taken := await to_thread.run_sync(steps.take, abandon_on_cancel=True, limiter=waiting):
                for step in taken:
                    yield step
        finally:
            steps.close()
            with self._moved:  # it may still be queued
                self._moved.notify_all()

    def _produce(self, prompt_ids: Sequence[int], sampling: Sampling, steps: _HandOff) -> None:
        failure: BaseException | None = None
        _running[current_thread()] = steps
        with self._moved:
            self._line.append(steps)
            self._moved.wait_for(lambda: steps.closed or steps in islice(self._line, self.max_concurrency))
        try:
            if not steps.closed:
                source = self._generate(prompt_ids, sampling)
                try:
                    for step in source:
                        if not steps.put([step] if isinstance(step, int) else step):
                            break
                finally:
                    if close := getattr(source, "close", None):
                        close()
        except BaseException as error:
            if steps.closed:
                raise
            failure = _of_the_engine(error)
        finally:
            _running.pop(current_thread(), None)
            with self._moved:
                self._line.remove(steps)
                self._moved.notify_all()
        steps.end(failure)


def _of_the_engine(error: BaseException) -> BaseException:
    """Return the error to raise for an engine's error.

    Errors that would end the process or the reader, such as `SystemExit` or `StopIteration`, become `EngineError`;
    others are returned unchanged.
    """
    if not isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | CancelledError | StopIteration):
        return error
    failure = EngineError(f"the engine ended itself: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


class _HandOff:
    """Queue of at most `size` steps, from the thread of a blocking engine to its reader."""

    def __init__(self, size: int) -> None:
        self.closed = False
        self._size = size
        self._steps: deque[Step] = deque()
        self._ended = False
        self._failure: BaseException | None = None
        self._changed = Condition()

    def put(self, step: Step) -> bool:
        """Wait for room in the queue and add a step; return false, without adding it, if the reader has closed."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or len(self._steps) < self._size)
            if not self.closed:
                self._steps.append(step)
                self._changed.notify_all()
            return not self.closed

    def end(self, failure: BaseException | None) -> None:
        """Mark the end of the steps. After the last one, `take` raises `failure` or, for None, returns an empty list."""
        with self._changed:
            self._ended, self._failure = True, failure
            self._changed.notify_all()

    def take(self) -> list[Step]:
        """Wait for steps, and return all that are queued.

        At the end, return an empty list, or raise the engine's failure.
        """
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._ended or self._steps)
            taken = list(self._steps)
            self._steps.clear()
            self._changed.notify_all()
            if not taken and self._failure is not None:
                raise self._failure
            return taken

    def close(self) -> None:
        """Close the queue for the reader: a waiting `put` returns false, a waiting `take` returns."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


_running: dict[Thread, _HandOff] = {}


@atexit.register
def _end_running() -> None:
    """Close the running generations at process exit, and wait up to `EXIT_PATIENCE` seconds for their threads.

    A thread that returns from native code during interpreter shutdown can abort the process, as CTranslate2 4.8 and
    pybind11 do.
    """
    deadline = time.monotonic() + EXIT_PATIENCE
    running = list(_running.items())
    for _, steps in running:
        steps.close()
    for thread, _ in running:
        thread.join(max(0.0, deadline - time.monotonic()))
