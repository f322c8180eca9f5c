"""What generated text turns out to be: pieces on channels, and what every splitter of text into pieces does.

A splitter is a parser of thinking, of tool calls, of both or of harmony's channels. Its pieces depend on the text
alone, not on how the text was cut: neighbouring pieces that say the same are one piece that was given in parts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Protocol

from msgspec import Struct

from tokenweir.encode._core import JsonValue
from tokenweir.stream.events import Channel


class Piece(Struct, frozen=True, gc=False):
    """A stretch of generated text, and what goes out for it.

    Attributes:
        source: The stretch. The joined sources of all pieces are the text; a piece that only says something has none.
        channel: What it belongs to; None for markup, which is cut out.
        text: What goes out: the stretch itself in the answer and the thinking, JSON text of the arguments in a call.
        name: The function's name, in the first piece of a call.
        call: Which call of the answer it belongs to, from 0.
        complete: The call's JSON is whole and closed: the last piece of a call, without text.
        malformed: Why this is no call after all. In the answer, it is markup that comes out as text; in a call, a piece
            without text ends one whose name has gone out.

    """

    source: str
    channel: Channel | None
    text: str
    name: str = ""
    call: int = 0
    complete: bool = False
    malformed: str | None = None


class Splitter(Protocol):
    """Splits text into pieces as it comes."""

    @property
    def channel(self) -> Channel:
        """What the text that comes next belongs to, as far as is known."""
        ...

    @property
    def held(self) -> str:
        """The text that was taken and that no piece has given yet."""
        ...

    @property
    def calm(self) -> bool:
        """Whether text with none of `starts` would pass whole on `channel`; it must be shown to `skim` instead.

        In a call's arguments, that is text which `arguments` takes too without being done or wrong.
        """
        ...

    @property
    def arguments(self) -> JsonValue | None:
        """The arguments of a call that are being read, of which the text that comes is; None while not calm."""
        ...

    @property
    def starts(self) -> frozenset[str]:
        """The characters at which something can begin that concerns the splitter now; it changes with `channel`."""
        ...

    def split(self, text: str) -> list[Piece]:
        """Take more text; give what is final."""
        ...

    def skim(self, text: str) -> None:
        """Take text that passes whole while calm: all of it is text of `channel`, and `arguments` have taken it."""
        ...

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows."""
        ...

    def copy(self) -> Splitter:
        """Return an independent splitter in the same state."""
        ...


def plain(text: str, channel: Channel) -> Piece:
    """Make a piece of text that goes out as it is."""
    return Piece(text, channel, text)


def markup(text: str) -> Piece:
    """Make a piece of text that is cut out."""
    return Piece(text, None, "")


def first_match(search: Callable[[str, int], re.Match[str] | None], text: str, place: int = 0) -> int:
    """Find where a pattern's `search` first succeeds, from `place` on; the end of the text if nowhere."""
    found = search(text, place)
    return found.start() if found else len(text)


def mark_at(text: str, place: int, marks: Iterable[str]) -> tuple[str, bool]:
    """Find which of some texts stands at `place`; none of them may be the beginning of another.

    Returns:
        The one that does, or an empty one; and whether `text` ends before it is known that none does.

    """
    partial = False
    for mark in marks:
        if text.startswith(mark, place):
            return mark, False
        if len(text) - place < len(mark) and mark.startswith(text[place:]):
            partial = True
    return "", partial
