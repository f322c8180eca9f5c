"""Protocol of splitters, the parsers of generated text.

A splitter parses thinking, tool calls, both, or messages on channels. Its pieces depend on the text alone and not on
how it was cut: neighbouring pieces with equal fields count as one piece.
`blocks/__init__.py` says how to write a block, which reads the calls.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.pieces import Piece
from tokenweir.stream.events.deltas import Channel

SkippableText = _core.SkippableText  # part of the protocol of splitters

MAX_PASSED = 512
"""Limit in bytes of held text on the fast path, before the splitter sees it."""


class Splitter(Protocol):
    """Incremental parser of generated text: it divides the text into pieces of thinking, answer, tool calls and markup."""

    @property
    def channel(self) -> Channel:
        """The channel of the next text (thinking, answer or tool calls), as far as the text so far tells."""
        ...

    @property
    def held(self) -> str:
        """The text that was fed and that no piece contains yet."""
        ...

    @property
    def skippable(self) -> SkippableText | None:
        """Description of text that may take the fast path instead of `feed`, because its pieces are known without it.

        None is always correct, but slower. Return the same object as long as nothing has changed.
        """
        ...

    def feed(self, text: str) -> list[Piece]:
        """Process more text and return the final pieces."""
        ...

    def take_tag(self, tag: str) -> None:
        """Continue behind a complete tag that `skippable` named. The tag and the skipped text before it are not fed."""
        ...

    def finish(self) -> list[Piece]:
        """End the answer: return pieces for the text that is held back."""
        ...

    def copy(self) -> Self:
        """Return an independent splitter in the same state."""
        ...

    def state(self) -> Any:
        """Return the state as plain data that `msgspec` can serialise: numbers, texts, bytes, lists, None."""
        ...

    def restore(self, state: Any) -> None:
        """Restore a state that `state` of a splitter made with the same arguments has returned.

        Raises:
            ValueError: The state is invalid; the splitter is then unusable. States are not trusted: any value either
                raises this, or is safe to continue from.

        """
        ...
