"""Protocol and shared parts of splitters, the parsers of generated text.

A splitter parses thinking, tool calls, both, or messages on channels. Its pieces depend on the text alone and not on
how it was cut: neighbouring pieces with equal fields count as one piece.
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

ANSWER, REASONING, TOOL_CALL = Channel  # faster than looking up members of the enum

SkippableText = _core.SkippableText  # part of the protocol of splitters


class Piece(Struct, frozen=True, gc=False):
    """A span of generated text, and the text emitted for it.

    Attributes:
        source: The span. The joined sources of all pieces are the text; a piece that only reports an event has none.
        channel: The channel; None for markup, which is removed.
        text: The emitted text: the span itself in the answer and the thinking, JSON text of the arguments in a call.
        name: The function's name, in the first piece of a call.
        call: The number of the call in the answer, from 0.
        complete: The call's JSON is complete. The last piece of a call, without text.
        malformed: Why this is not a call after all. In the answer, the piece is markup that is emitted as text. In a
            call whose name has been emitted, the call has broken off: the text from there on is as the model wrote it.

    """

    source: str
    channel: Channel | None
    text: str
    name: str = ""
    call: int = 0
    complete: bool = False
    malformed: str | None = None


MAX_PASSED = 512
"""Limit in bytes of held text on the fast path, before the splitter sees it."""


MAX_AT_ONCE = 1 << 12
"""Most characters per step of a parser that slices its input repeatedly, which avoids quadratic time."""


MAX_HEADER = 1024
"""Most characters of a name, or of other text that is scanned again with each part until it is complete."""

ShortText = Annotated[str, Meta(max_length=2 * MAX_HEADER)]
"""Bounded text of a saved state: a name, a header, a reason, a prefix of markup. Genuine ones are never longer."""

MAX_COUNT = 1 << 48
"""Bounded number of a saved state: above any real count of calls, ids or characters, and safe to increment."""

Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
CallNumber = Annotated[int, Meta(ge=-1, le=MAX_COUNT)]

CUT_SHORT = "the answer ends inside a tool call"


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
            ValueError: The state is invalid. States are not trusted: any value either works or raises this.

        """
        ...


class Block(Protocol):
    """Parser of blocks of tool calls for `ToolParser`: a block is the text behind an opening text, up to its end.

    One object, made with the style and the request's tools, reads all blocks of an answer, one after the other.

    Attributes:
        call: The number of the call whose name was emitted last; -1 before the first one.

    """

    call: int

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None: ...

    def begin(self, opener: str, call: int) -> None:
        """Start a block, whatever the state of the last one.

        Args:
            opener: The opening text, which is held; empty for a block without opening text.
            call: The number of the last call, -1 before the first one.

        """
        ...

    @property
    def done(self) -> bool:
        """Whether the block has ended."""
        ...

    @property
    def broken(self) -> bool:
        """Whether the rest of the block is emitted as answer, because it is malformed."""
        ...

    def leave_opener(self) -> None:
        """Drop the opening text that `begin` holds, because it is part of the prompt and not of the answer."""
        ...

    @property
    def held(self) -> str:
        """The text that was fed, the opening text included, and that no piece contains yet."""
        ...

    @property
    def skippable(self) -> SkippableText | None:
        """Description of text that may take the fast path, without `feed`; None if all text must be fed.

        Its channel is that of calls, or the answer if the block has broken. It may name `closers`: texts that end the
        block if only markup is held before them. The block is not fed these.
        """
        ...

    def feed(self, text: str, out: list[Piece]) -> str:
        """Process more text, append the final pieces to `out`, and return the text after the block.

        Return an empty text while the block is open.
        """
        ...

    def finish(self) -> list[Piece]:
        """End the answer: return pieces for the text that is held back."""
        ...

    def copy(self) -> Self:
        """Return an independent block parser in the same state."""
        ...

    def state(self) -> Any:
        """Return the state as plain data that `msgspec` can serialise."""
        ...

    def restore(self, state: Any) -> None:
        """Restore a state that `state` of a block made with the same arguments has returned.

        Raise `ValueError` for an invalid state.
        """
        ...


class Saved:
    """Mixin with `state`, `restore` and `copy`, driven by a table of the mutable attributes.

    An attribute has either a type that `msgspec` reads and writes, or these three methods itself, as a `JsonValue`,
    a `HeldText` or another `Saved`. A class with more to save extends the methods. A state is not trusted: types bound
    texts and numbers (`ShortText`, `Count`), and `check` raises for inconsistent values.
    """

    __slots__ = ()

    SAVED: ClassVar[dict[str, Any]] = {}
    """The mutable attributes, with their types."""

    def state(self) -> Any:
        """Return the values of the attributes that `SAVED` lists, in its order, as plain data."""
        values = (getattr(self, name) for name in self.SAVED)
        return [value.state() if hasattr(value, "state") else msgspec.to_builtins(value) for value in values]

    def restore(self, state: Any) -> None:
        """Set the attributes that `SAVED` lists from the result of `state`, and check them.

        Raises:
            ValueError: The state is invalid (`msgspec.ValidationError` is a subclass).

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
        """Raise `ValueError` if a restored state violates an invariant that later steps rely on."""

    def copy(self) -> Self:
        """Return an independent copy."""
        other = copy(self)
        for name in self.SAVED:
            value = getattr(self, name)
            if hasattr(value, "copy"):
                setattr(other, name, value.copy())
        return other


def in_parts(text: str) -> Iterator[str]:
    """Yield a text in parts of at most `MAX_AT_ONCE` characters."""
    return (text[place : place + MAX_AT_ONCE] for place in range(0, len(text), MAX_AT_ONCE))


def check_restored(holds: bool, what: str) -> None:
    """Raise `ValueError` unless `holds`, an invariant of a restored state; `what` says what is wrong, for the message."""
    if not holds:
        raise ValueError(f"no text leads to such a state: {what}")


def check_channel(channel: Channel) -> None:
    """Raise `ValueError` if `channel`, restored for text outside of calls, is the channel of tool calls."""
    check_restored(channel is not TOOL_CALL, "text of a tool call where there is none")


def plain(text: str, channel: Channel) -> Piece:
    """Return a piece for text that is emitted unchanged on `channel`."""
    return Piece(text, channel, text)


def markup(text: str) -> Piece:
    """Return a piece for text that is removed from the output."""
    return Piece(text, None, "")


def first_match(search: Callable[[str, int], re.Match[str] | None], text: str, place: int = 0) -> int:
    """Return the index of a pattern's first match from `place` on, or the length of the text if nothing matches.

    Args:
        search: The `search` method of a compiled pattern.
        text: The text.
        place: The index at which to begin.

    """
    found = search(text, place)
    return found.start() if found else len(text)


def mark_at(text: str, place: int, marks: Iterable[str]) -> tuple[str, bool]:
    """Return the one of `marks` that stands at index `place` of the text, or an empty text.

    Args:
        text: The text so far.
        place: The index.
        marks: Texts of markup. One that is a prefix of another must be listed after it.

    Returns:
        The mark, and whether the text ends too early to decide.

    """
    partial = False
    for mark in marks:
        if text.startswith(mark, place):
            return ("", True) if partial else (mark, False)
        if len(text) - place < len(mark) and mark.startswith(text[place:]):
            partial = True
    return "", partial


def find_mark(text: str, place: int, marks: tuple[str, ...]) -> tuple[int, str]:
    """Find the first occurrence of any of `marks` from index `place` on.

    Args:
        text: The text so far.
        place: The index at which to begin.
        marks: Texts of markup, none a prefix of another.

    Returns:
        The index of the mark, and the mark. If no mark is complete, the index where a mark may begin that the end of
        the text cuts off, or the length of the text; and an empty text.

    """
    found = first_of(marks)(text, place)
    return (len(text), "") if found is None else (found.start(), mark_at(text, found.start(), marks)[0])


@lru_cache(maxsize=1024)  # some marks contain names that a model has written
def first_of(marks: tuple[str, ...]) -> Callable[..., re.Match[str] | None]:
    """Return the `search` method of a pattern for the first of several marks, or for the start of one at the text's end."""
    return re.compile("|".join(map(whole_or_cut, marks)) or "(?!)").search


def whole_or_cut(mark: str, pattern: str = "") -> str:
    """Return a pattern for a mark and `pattern` behind it, or for the start of the mark at the text's end."""
    for char in reversed(mark):
        pattern = re.escape(char) + (pattern and rf"(?:\Z|{pattern})")
    return pattern
