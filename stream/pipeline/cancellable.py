"""An answer that another task can end, so that what the decoder holds still comes, and the usage.

Cancelling the task that reads would end it too, but throws away what is held and what nobody has read yet.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from typing import Any, Self

from anyio import CancelScope

from tokenweir.stream.events import Delta
from tokenweir.stream.pipeline.stages import Owned, Stage


class Cancellable(AsyncIterator[Any]):
    """A source that can be cancelled: it is closed at once, and gives its last items in place of the rest.

    Its reader is in a cancel scope only while it waits for the source, so a stage may `yield` what it gets. The scope
    costs some microseconds an item.

    Args:
        source: What to read. It is owned and closed here.
        last: What comes if it is cancelled.

    """

    def __init__(self, source: AsyncIterable[Any], last: Iterable[Any]) -> None:
        self._source = Owned(source)
        self._last = iter(last)
        self._cancelled = False
        self._waiting: CancelScope | None = None

    def cancel(self) -> None:
        """End it, at any time and from any task of its event loop; nothing happens if it has ended."""
        self._cancelled = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def aclose(self) -> None:
        """Close the source, once."""
        await self._source.aclose()

    def __aiter__(self) -> Self:
        self._items = aiter(self._source)
        return self

    async def __anext__(self) -> Any:
        if not self._cancelled:
            try:
                with CancelScope() as self._waiting:
                    return await anext(self._items)
            finally:
                self._waiting = None
        await self._source.aclose()
        for item in self._last:
            return item
        raise StopAsyncIteration


class Deltas(Stage[Delta]):
    """The deltas of `chat()`: an async generator, which any task of its event loop can cancel.

    Args:
        items: The deltas.
        sources: What the engine gives for them.

    """

    def __init__(self, items: AsyncGenerator[Delta, None], sources: Sequence[Cancellable]) -> None:
        super().__init__(items)
        self._cancellable = sources

    def cancel(self) -> None:
        """Stop the engine; what was held still comes, and for each answer a `Finish`, reason "cancelled", with its usage.

        An answer that has ended by itself stays as it is.
        """
        for source in self._cancellable:
            source.cancel()
