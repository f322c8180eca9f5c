"""Tasks beside a context: started in it, cancelled when it is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """A task group for as long as the context lasts.

    Leaving it cancels the tasks and waits for their end. What the body raises comes out as it is, where a task group
    alone would wrap it in an `ExceptionGroup`.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised below
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
