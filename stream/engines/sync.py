"""A blocking generator as an engine: it runs in a thread of its own."""

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
from tokenweir.encode.options import check_integers
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

Step = Sequence[int] | EngineStep

EXIT_PATIENCE = 5.0
"""Seconds for which the end of the process waits for the steps under way."""


class SyncEngine:
    """Run a blocking generator of ids in a thread.

    One thread carries one generation from start to end, so thread-local state such as `torch.inference_mode` holds.
    Once `buffer` steps wait for the reader, the thread waits too. The reader takes all that wait at once.

    Closing returns at once. There is no way to interrupt a step in Python: the step under way is finished and dropped,
    then the blocking generator is closed in its own thread, and only then does its place become free for the next one.
    The end of the process waits for that too, but no longer than 5 seconds.

    Attributes:
        max_concurrency: Most generations that run at the same time.
        buffer: Most steps that wait for the reader.

    """

    def __init__(
        self,
        generate: Callable[[Sequence[int], Sampling], Iterable[int | Step]],
        *,
        max_concurrency: int = 1,
        buffer: int = 16,
    ) -> None:
        """Make an engine of a function.

        Args:
            generate: Called in the thread with the prompt's ids and the sampling; returns an iterable of ids, of
                sequences of ids, or of `EngineStep`. If that has a `close()`, it is called at the end in any case.
            max_concurrency: Most generations at the same time; more wait for their turn. Few models may be called from
                two threads at once, so the default is 1.
            buffer: Most steps to hold for the reader.

        Raises:
            TypeError: An argument is of the wrong type.
            ValueError: `max_concurrency` or `buffer` is below 1.

        """
        if not callable(generate):
            raise TypeError(f"generate must be a function, not {type(generate).__name__}")
        check_integers(max_concurrency=max_concurrency, buffer=buffer)
        if max_concurrency < 1:
            raise ValueError(f"max_concurrency={max_concurrency} is below 1")
        if buffer < 1:
            raise ValueError(f"buffer={buffer} is below 1")
        self.max_concurrency = max_concurrency
        self.buffer = buffer
        self._generate = generate
        self._line: list[_HandOff] = []  # as they came: the first `max_concurrency` generate, the others wait
        self._moved = Condition()

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[Step, None]:
        """Generate from `prompt_ids` under asyncio or trio.

        Whatever the blocking generator raises is raised here, after the steps before it; `SystemExit` and its like, which
        would end the reader's process, as `EngineError`. What it raises once this generator is closed goes to
        `threading.excepthook`.
        """
        steps = _HandOff(self.buffer)
        # A daemon: an engine that hangs in a step must not keep the process from ending.
        thread = Thread(
            target=copy_context().run,
            args=(self._produce, prompt_ids, sampling, steps),
            name="tokenweir-engine",
            daemon=True,
        )
        thread.start()
        # The reader's waiting is done in one more thread, from anyio's pool: about 0.1 ms a hop. Waking the event loop
        # from the engine's thread would be cheaper, but that thread would then depend on the loop being alive.
        waiting = anyio.CapacityLimiter(1)
        try:
            while taken := await to_thread.run_sync(steps.take, abandon_on_cancel=True, limiter=waiting):
                for step in taken:
                    yield step
        finally:
            steps.close()
            with self._moved:  # it may still wait for its turn
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
    """Make an error of what would end the process, or the reader, where it is raised: in this thread it ends the engine."""
    if not isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit | CancelledError | StopIteration):
        return error
    failure = EngineError(f"the engine ended itself: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


class _HandOff:
    """Steps on their way from one thread to another, never more than `size` of them."""

    def __init__(self, size: int) -> None:
        self.closed = False
        self._size = size
        self._steps: deque[Step] = deque()
        self._ended = False
        self._failure: BaseException | None = None
        self._changed = Condition()

    def put(self, step: Step) -> bool:
        """Wait for room and add a step; False if the reader is gone."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or len(self._steps) < self._size)
            if not self.closed:
                self._steps.append(step)
                self._changed.notify_all()
            return not self.closed

    def end(self, failure: BaseException | None) -> None:
        """No more steps come; `failure` is raised after the last one."""
        with self._changed:
            self._ended, self._failure = True, failure
            self._changed.notify_all()

    def take(self) -> list[Step]:
        """Wait for steps and take all there are; none means the end."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._ended or self._steps)
            taken = list(self._steps)
            self._steps.clear()
            self._changed.notify_all()
            if not taken and self._failure is not None:
                raise self._failure
            return taken

    def close(self) -> None:
        """The reader is gone."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


_running: dict[Thread, _HandOff] = {}


@atexit.register
def _end_running() -> None:
    """Close what still runs, and let its threads end.

    A thread that comes back from native code to an interpreter which is being torn down can abort the whole process;
    CTranslate2 4.8 and pybind11 do.
    """
    deadline = time.monotonic() + EXIT_PATIENCE
    running = list(_running.items())
    for _, steps in running:
        steps.close()
    for thread, _ in running:
        thread.join(max(0.0, deadline - time.monotonic()))
