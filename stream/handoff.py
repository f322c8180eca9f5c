"""The hand-off between an engine and a socket: bounded, and it merges what the socket is too slow to take one by one.

A queue of deltas would grow with a slow reader or send ever more, ever smaller messages. Here the deltas that wait are
merged, so a reader that is late gets fewer and longer ones, and the engine is held back once `max_chars` wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import anyio
from anyio.lowlevel import checkpoint

from tokenweir.stream.events import Delta, ReasoningDelta, TextDelta


class MergingHandoff:
    """Deltas from one task to another, under asyncio and trio.

    Args:
        max_chars: Characters of text that may wait before `put` does.

    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._waiting: list[Delta] = []
        self._chars = 0
        self._closed = False
        self._filled = anyio.Event()
        self._emptied = anyio.Event()

    async def put(self, delta: Delta) -> None:
        """Add a delta; waits while `max_chars` or more are waiting already."""
        while self._chars >= self._max_chars:
            await self._emptied.wait()
        self._waiting.append(delta)
        self._chars += len(delta.text) if isinstance(delta, TextDelta | ReasoningDelta) else 0
        self._filled.set()
        await checkpoint()  # an engine that never waits must not keep the loop to itself

    def close(self) -> None:
        """Say that no more deltas come; what waits can still be taken."""
        self._closed = True
        self._filled.set()

    async def take(self) -> list[Delta]:
        """Everything that waits, merged; waits for the first, and returns an empty list after the last."""
        if not self._waiting and not self._closed:
            await self._filled.wait()
        taken, self._waiting, self._chars = self._waiting, [], 0
        self._emptied.set()
        self._filled, self._emptied = anyio.Event(), anyio.Event()
        return merge(taken)


def merge(deltas: Iterable[Delta]) -> list[Delta]:
    """Neighbours of one channel and one answer become one delta; order, text and ids stay."""
    merged: list[Delta] = []
    for (kind, index), run in groupby(deltas, key=lambda delta: (type(delta), delta.index)):
        if kind is TextDelta or kind is ReasoningDelta:
            pieces = [delta for delta in run if isinstance(delta, TextDelta | ReasoningDelta)]
            text = "".join(piece.text for piece in pieces)
            merged.append(kind(text, [token_id for piece in pieces for token_id in piece.token_ids], index))
        else:
            merged.extend(run)
    return merged
