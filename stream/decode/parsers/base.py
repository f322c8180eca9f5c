"""The protocol of splitters: what every parser of generated text does, and what they have in common.

A splitter is a parser of thinking, of tool calls, of both or of harmony's channels. Its pieces depend on the text alone,
not on how the text was cut: neighbouring pieces that say the same are one piece that was given in parts.
`blocks/__init__.py` says how to write a `Block`, which reads the calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Protocol, Self

import msgspec
from msgspec import Meta, Struct

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.grammars import ToolStyle

ANSWER, REASONING, TOOL_CALL = Channel  # a member that is looked up in its class costs ten times as much as a name

Passage = _core.Passage  # here it is part of the protocol of splitters


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


MAX_PASSED = 512
"""Bytes of text that may pass, where it is held, before a splitter sees it."""


MAX_AT_ONCE = 1 << 12
"""Characters that are fed at once to what cuts its text again and again, so that its work does not grow with its square."""


MAX_HEADER = 1024
"""Characters that a name may have, or other text that is looked at again with each part until its end has come."""

ShortText = Annotated[str, Meta(max_length=2 * MAX_HEADER)]
"""A saved text that is looked at again: a name, a header, a reason, the beginning of markup. No honest one is longer."""

MAX_COUNT = 1 << 48
"""More calls, ids or characters than any answer has, so that a number of a saved state can still be counted on."""

Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
CallNumber = Annotated[int, Meta(ge=-1, le=MAX_COUNT)]

CUT_SHORT = "the answer ends inside a tool call"


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
    def passage(self) -> Passage | None:
        """What may pass now without being fed at once; None for nothing, which is always right, only slower.

        Give the same object as long as nothing has changed.
        """
        ...

    def feed(self, text: str) -> list[Piece]:
        """Take more text; give what is final."""
        ...

    def cross(self, tag: str) -> None:
        """Go on behind a whole tag that `passage` named; neither it nor text that has passed before it is fed."""
        ...

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows."""
        ...

    def copy(self) -> Self:
        """Return an independent splitter in the same state."""
        ...

    def state(self) -> Any:
        """Return the state as plain data, which `msgspec` can serialise: numbers, texts, bytes, lists, None."""
        ...

    def restore(self, state: Any) -> None:
        """Go on in a state that `state` gave, of a splitter made with the same arguments.

        Raises:
            ValueError: It is no such state. It is not trusted: whatever it is, nothing worse happens.

        """
        ...


class Block(Protocol):
    """Reads blocks of tool calls, one after the other, each from behind its opening text to its end, for `ToolParser`.

    It is made once for an answer, with the style and the request's tools.

    Attributes:
        call: The number of the call whose name was given last.

    """

    call: int

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None: ...

    def begin(self, opener: str, call: int) -> None:
        """Begin a block, whatever came before.

        Args:
            opener: The opening text, which is held; empty for a block without one.
            call: The number of the last call, from -1.

        """
        ...

    @property
    def done(self) -> bool:
        """Whether the block has ended."""
        ...

    @property
    def broken(self) -> bool:
        """Whether what is left of the block goes out as answer."""
        ...

    def leave_opener(self) -> None:
        """Leave the opening text out: the prompt has given it, so it is no part of the answer."""
        ...

    @property
    def held(self) -> str:
        """The text that was taken, the opening text included, and that no piece has given yet."""
        ...

    @property
    def passage(self) -> Passage | None:
        """As in `Splitter`; the channel is that of calls, or the answer if the block has broken.

        It may name `closers`: what ends the block, with nothing but markup held before it. The block is not told of one.
        """
        ...

    def feed(self, text: str, out: list[Piece]) -> str:
        """Take more text, add what is final to `out`, and return the text after the block."""
        ...

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows."""
        ...

    def copy(self) -> Self:
        """As in `Splitter`."""
        ...

    def state(self) -> Any:
        """As in `Splitter`."""
        ...

    def restore(self, state: Any) -> None:
        """As in `Splitter`."""
        ...


class Saved:
    """Gives a class `state`, `restore` and `copy`, by its table of the attributes that change.

    An attribute is either of a type that `msgspec` reads and writes, or an object that has these three methods itself,
    such as a `JsonValue`, a `HeldText` or another of this kind. A class with more to save extends the methods. A state is
    not trusted: types bound texts and numbers (`ShortText`, `Count`), and `check` refuses values that contradict each other.
    """

    __slots__ = ()

    SAVED: ClassVar[dict[str, Any]] = {}
    """The attributes, with their types."""

    def state(self) -> Any:
        """Return the state as plain data."""
        values = (getattr(self, name) for name in self.SAVED)
        return [value.state() if hasattr(value, "state") else msgspec.to_builtins(value) for value in values]

    def restore(self, state: Any) -> None:
        """Go on in a state that `state` gave.

        Raises:
            ValueError: It is no such state; `msgspec.ValidationError` is one.

        """
        values = msgspec.convert(state, list[Any])
        if len(values) != len(self.SAVED):
            raise ValueError(f"the state of a {type(self).__name__} has {len(self.SAVED)} parts, not {len(values)}")
        for value, (name, kind) in zip(values, self.SAVED.items(), strict=True):
            if hasattr(kind, "restore"):
                getattr(self, name).restore(value)
            else:
                setattr(self, name, msgspec.convert(value, kind))
        self.check()

    def check(self) -> None:
        """Check what was restored, as far as later steps rely on it.

        Raises:
            ValueError: No text leads to such a state.

        """

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        for name in self.SAVED:
            value = getattr(self, name)
            if hasattr(value, "copy"):
                setattr(other, name, value.copy())
        return other


def in_parts(text: str) -> Iterator[str]:
    """Cut a text into parts of at most `MAX_AT_ONCE` characters."""
    return (text[place : place + MAX_AT_ONCE] for place in range(0, len(text), MAX_AT_ONCE))


def check_restored(holds: bool, what: str) -> None:
    """Refuse a restored state unless something holds of it.

    Raises:
        ValueError: It does not.

    """
    if not holds:
        raise ValueError(f"no text leads to such a state: {what}")


def check_channel(channel: Channel) -> None:
    """Refuse a state in which text outside of calls is on the calls' channel.

    Raises:
        ValueError: It is.

    """
    check_restored(channel is not TOOL_CALL, "text of a tool call where there is none")


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
    """Find which of some texts stands at `place`; one that is the beginning of another must come after it.

    Returns:
        The one that does, or an empty one; and whether `text` ends before it is known that none does.

    """
    partial = False
    for mark in marks:
        if text.startswith(mark, place):
            return ("", True) if partial else (mark, False)
        if len(text) - place < len(mark) and mark.startswith(text[place:]):
            partial = True
    return "", partial


def find_mark(text: str, place: int, marks: tuple[str, ...]) -> tuple[int, str]:
    """Find the first of some texts from a place on; none of them may be the beginning of another.

    Returns:
        Where it is, or may be if it is cut off at the end of the text, or that end; and which one it is, or an empty text.

    """
    found = first_of(marks)(text, place)
    return (len(text), "") if found is None else (found.start(), mark_at(text, found.start(), marks)[0])


@lru_cache(maxsize=1024)  # some marks have names in them that a model has written
def first_of(marks: tuple[str, ...]) -> Callable[..., re.Match[str] | None]:
    """Make a search for the first of some texts, or for the beginning of one that the end of the text cuts off."""
    return re.compile("|".join(map(_whole_or_cut, marks)) or "(?!)").search


def _whole_or_cut(mark: str) -> str:
    pattern = ""
    for char in reversed(mark):
        pattern = re.escape(char) + (pattern and rf"(?:\Z|{pattern})")
    return pattern
