"""Base classes for formats of messages: text is divided at marks, each of which may begin or end a message."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from tokenweir.stream.decode.parsers.base import (
    ANSWER,
    MAX_HEADER,
    Piece,
    Saved,
    check_channel,
    check_restored,
    first_of,
    mark_at,
)
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.tools import Tools


class MessageParser(Saved, ABC):
    """Base class of splitters that divide text at marks.

    Every subclass has the states "header", also the state after a prompt that ends within a message, and "body".
    Some have "broken": text that is emitted as answer with a reason, up to the next markup.
    """

    __slots__ = ("_ahead", "_channel", "_held", "_reason", "_state")

    MARKS: ClassVar[tuple[str, ...]]
    """The texts that divide; no mark is a prefix of another."""

    def __init__(self) -> None:
        self._ahead = ""  # not processed yet: a possible prefix of a mark
        self._channel: Channel = ANSWER  # of the message
        self._held = ""  # text of a header, or of a call that has not begun, that no piece contains yet
        self._reason = ""  # why text is "broken"
        self._state = "header"

    def _begin_behind(self, before: Iterable[str] | None) -> None:
        """Start after the prompt's text behind its last mark that begins a message; None if it has no such mark."""
        if before is None:
            self._state = "body"
            return
        for text in before:
            self.feed(text)
        self._held = ""  # the prompt's text is not part of the answer

    def take_tag(self, tag: str) -> None:
        """Raise, unless a subclass has skippable text that names tags."""
        raise ValueError(f"no skippable text names {tag!r}")

    def feed(self, text: str) -> list[Piece]:
        out: list[Piece] = []
        parts, self._ahead = parts_by_marks(self._ahead + text, self.MARKS)
        for part, is_mark in parts:
            if is_mark:
                self._mark(part, out)
            else:
                self._text(part, out)
        return out

    def finish(self) -> list[Piece]:
        out: list[Piece] = []
        if self._ahead:
            ahead, self._ahead = self._ahead, ""
            self._text(ahead, out)
        self._end(out)
        return out

    def check(self) -> None:
        check_channel(self._channel)
        may_be_mark = any(mark.startswith(self._ahead) for mark in self.MARKS)
        check_restored(may_be_mark, "text is held that begins no mark")
        check_restored(self._state in ("header", "call") or not self._held, "text is held outside of a header")

    def _break(self, reason: str, out: list[Piece]) -> None:
        """Emit the held text, and all text up to the next markup, as answer with a reason."""
        if self._held:
            out.append(Piece(self._held, ANSWER, self._held, malformed=reason))
        self._held, self._state, self._reason, self._channel = "", "broken", reason, ANSWER

    @abstractmethod
    def _text(self, text: str, out: list[Piece]) -> None:
        """Process text without marks."""

    @abstractmethod
    def _mark(self, mark: str, out: list[Piece]) -> None:
        """Process one mark."""

    @abstractmethod
    def _end(self, out: list[Piece]) -> None:
        """Flush the held text at the end of the answer."""


class CallingMessages(MessageParser):
    """Base class for formats whose calls (state "call") are read by a `ToolParser`."""

    __slots__ = ("_tools",)

    def __init__(self, style: str, schemas: Tools | ToolSchemas) -> None:
        super().__init__()
        self._tools = ToolParser(style, schemas)

    @property
    def channel(self) -> Channel:
        return self._tools.channel if self._state == "call" else self._channel

    def check(self) -> None:
        super().check()
        check_restored(self._state == "call" or not self._tools.held, "a call goes on outside of its message")

    @property
    def held(self) -> str:
        """The text of a header or of a call, or a possible prefix of markup."""
        return self._held + self._tools.held + self._ahead


def refused_header(header: str, beginning: re.Pattern[str]) -> str | None:
    """Return why a partial header cannot become a valid one (`beginning` matches the prefixes that can), or None."""
    found = beginning.match(header)
    end = min(found.end() if found else 0, MAX_HEADER)
    return f"{header[: end + 1]!r:.80} is no header of a message" if end < len(header) else None


def parts_by_marks(text: str, marks: tuple[str, ...]) -> tuple[list[tuple[str, bool]], str]:
    """Divide a text at marks, none a prefix of another.

    Return the parts, each with a flag that is true for marks; and the rest at the end that may become a mark.
    """
    parts: list[tuple[str, bool]] = []
    search, place = first_of(marks), 0
    while (found := search(text, place)) is not None:
        begin = found.start()
        if begin > place:
            parts.append((text[place:begin], False))
        mark, _ = mark_at(text, begin, marks)
        if not mark:
            return parts, text[begin:]
        parts.append((mark, True))
        place = begin + len(mark)
    if place < len(text):
        parts.append((text[place:], False))
    return parts, ""
