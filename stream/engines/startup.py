"""Start of a server in front of an engine's: wait until that one is up, and find out by one id whether it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Protocol, TypeVar

import anyio

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.served_model import ServedModel
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.events.step import EngineStep

T = TypeVar("T")

NOT_UP = frozenset({"overloaded", "timeout", "unreachable"})
"""Kinds of failure of a server that still loads its model; any other one would come again."""
ASK_SECONDS = 30.0
"""Most seconds until the first id of a server that is up."""
PAUSE = 1.0
"""Seconds between two attempts."""


class RemoteEngine(Protocol):
    """Engine over a server that describes its model.

    Attributes:
        ready: Whether the engine answers, for `/ready`.

    """

    ready: bool

    async def served(self) -> ServedModel:
        """Request the description of the model."""
        ...

    def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> AsyncGenerator[EngineStep, None]:
        """Generate from `prompt_ids`."""
        ...


async def check_answer(engine: RemoteEngine) -> None:
    """Let an engine describe its model and generate one id; `ready` tells whether it did.

    Raises:
        EngineError: The server cannot be reached, gives no id within `ASK_SECONDS`, refuses or fails.

    """
    engine.ready = False
    try:
        with anyio.fail_after(ASK_SECONDS):
            await engine.served()
            async with aclosing(engine.generate([0], Sampling(max_tokens=1))) as steps:
                async for _ in steps:
                    pass
    except TimeoutError as error:
        raise EngineError(f"the engine's server gives no id within {ASK_SECONDS:g} s", kind="timeout") from error
    engine.ready = True


async def until_up(ask: Callable[[], Awaitable[T]], seconds: float, report: Callable[[str], object]) -> T:
    """Call `ask()` until the engine's server is up, and return its result.

    Args:
        ask: The call, which raises `EngineError` of a kind in `NOT_UP` for a server that is not up yet.
        seconds: How long to wait.
        report: Called with a line for users when the waiting begins, and when it is over.

    Raises:
        EngineError: The server is up and refuses or fails, or it is not up within `seconds`.

    """
    end, waits = monotonic() + seconds, False
    while True:
        try:
            result = await ask()
        except EngineError as error:
            if error.kind not in NOT_UP or monotonic() >= end:
                raise
            if not waits:
                report(f"{error}; waiting for it, {seconds:g} s at most")
            waits = True
            await anyio.sleep(PAUSE)
        else:
            if waits:
                report("the engine's server is up")
            return result
