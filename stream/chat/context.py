"""`Context`: an asynchronous context manager that explains itself where `async with` is forgotten."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Generic, NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Context(AbstractAsyncContextManager[T], Generic[T]):
    """Context manager that must be entered by `async with`.

    Iterating or awaiting it, or entering it by a plain `with`, raises a `TypeError` that shows the right form. One that is
    dropped without being entered gives a `RuntimeWarning`, as a coroutine does that was never awaited.

    Args:
        manager: The context manager to enter.
        usage: The right form, such as "async with chat(...) as deltas".

    """

    def __init__(self, manager: AbstractAsyncContextManager[T], usage: str) -> None:
        self._manager = manager
        self._usage = usage
        self._entered = False

    async def __aenter__(self) -> T:
        self._entered = True
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<{'entered' if self._entered else 'not entered yet'}: {self._usage}>"

    def __del__(self) -> None:
        if not getattr(self, "_entered", True):
            warnings.warn(f"nothing was run: write `{self._usage}`", RuntimeWarning, stacklevel=2, source=self)

    if not TYPE_CHECKING:  # type checkers refuse these uses by themselves

        def _refuse(self, *_: object) -> NoReturn:
            self._entered = True  # the error says it already
            raise TypeError(f"write `{self._usage}`")

        __aiter__ = __iter__ = __await__ = __enter__ = __exit__ = _refuse


def entered_as(usage: str) -> Callable[[Callable[P, AsyncIterator[T]]], Callable[P, Context[T]]]:
    """Decorate an asynchronous generator function so that its calls give a `Context` with this usage."""

    def decorate(function: Callable[P, AsyncIterator[T]]) -> Callable[P, Context[T]]:
        open_context = asynccontextmanager(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Context[T]:
            return Context(open_context(*args, **kwargs), usage)

        return call

    return decorate
