"""Background tasks that live as long as a context."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
from anyio.lowlevel import checkpoint_if_cancelled, current_token

Work = Callable[..., Coroutine[Any, Any, None]]


class Tasks(Protocol):
    """Object that starts background tasks."""

    def start_soon(self, work: Work, *arguments: Any) -> object:
        """Start a task that runs an async function with these arguments."""
        ...


@asynccontextmanager
async def background_tasks() -> AsyncIterator[Tasks]:
    """Yield an object whose `start_soon` starts background tasks; the tasks end with the context.

    Leaving the context cancels the tasks and waits for their end. An exception of the body is raised unchanged, where a
    task group would wrap it in an `ExceptionGroup`.

    Tasks should handle their own errors. Under asyncio, the first error of a task is raised when the context is left; under
    trio it also cancels the body, and is raised in an `ExceptionGroup`.

    Under asyncio each task is cancelled once. An engine's task may swallow a cancellation; anyio's scopes would cancel it
    again and again, and keep a core busy for as long as it runs.
    """
    if isinstance(current_token().native_token, asyncio.AbstractEventLoop):
        own = _AsyncioTasks()
        try:
            yield own
        finally:
            await own.end()
        return
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised below
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    await checkpoint_if_cancelled()  # a nursery without running tasks does not check for cancellation


class _AsyncioTasks:
    """Background tasks under asyncio, each of which is cancelled only once."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None

    def start_soon(self, work: Work, *arguments: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._run(work, *arguments))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, work: Work, *arguments: Any) -> None:
        try:
            await work(*arguments)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - asyncio would end its loop for a `SystemExit`
            self._failure = self._failure or error

    async def end(self) -> None:
        """Cancel the tasks and wait for their end; then raise the first error of a task, if any."""
        interrupted: asyncio.CancelledError | None = None
        told = False
        with anyio.CancelScope(shield=True):
            while self._running:
                try:
                    if told:
                        await asyncio.wait(self._running)
                    else:
                        await asyncio.sleep(0)  # a task cancelled before it begins would not close its source
                        told = True
                        for task in self._running:
                            task.cancel()
                except asyncio.CancelledError as error:
                    interrupted = error
        if self._failure is not None:
            raise self._failure
        if interrupted is not None:
            raise interrupted
