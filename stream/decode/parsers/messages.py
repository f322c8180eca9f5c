"""What formats of messages have in common: text is divided at the marks, any of which may begin or end a message."""

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
from tokenweir.stream.decode.parsers.schemas import Tools, ToolSchemas
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel


class MessageParser(Saved, ABC):
    """Splits text at marks. A class of this kind is a `Splitter`.

    The states "header", where a prompt that ends within a message leaves it, and "body" are among those of each. Some also
    have "broken": text that goes out as answer with a reason, up to the next markup.
    """

    __slots__ = ("_ahead", "_channel", "_held", "_reason", "_state")

    MARKS: ClassVar[tuple[str, ...]]
    """Texts, none of which is the beginning of another."""

    def __init__(self) -> None:
        self._ahead = ""  # not looked at yet: the beginning of what may become a mark
        self._channel: Channel = ANSWER  # of the message
        self._held = ""  # of a header, or of a call that has not begun: what has not been given
        self._reason = ""  # why text is "broken"
        self._state = "header"

    def _begin_behind(self, before: Iterable[str] | None) -> None:
        """Start where a prompt ends: in parts, its text after the last mark that begins a message; None if it has none."""
        if before is None:
            self._state = "body"
            return
        for text in before:
            self.feed(text)
        self._held = ""  # none of that is of the answer

    def feed(self, text: str) -> list[Piece]:
        """Take more text; give what is final. The joined sources are the text itself."""
        out: list[Piece] = []
        parts, self._ahead = parts_by_marks(self._ahead + text, self.MARKS)
        for part, is_mark in parts:
            if is_mark:
                self._mark(part, out)
            else:
                self._text(part, out)
        return out

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows."""
        out: list[Piece] = []
        if self._ahead:
            ahead, self._ahead = self._ahead, ""
            self._text(ahead, out)
        self._end(out)
        return out

    def check(self) -> None:
        """Check what was restored."""
        check_channel(self._channel)
        may_be_mark = any(mark.startswith(self._ahead) for mark in self.MARKS)
        check_restored(may_be_mark, "text is held that begins no mark")
        check_restored(self._state in ("header", "call") or not self._held, "text is held outside of a header")

    def _break(self, reason: str, out: list[Piece]) -> None:
        """Give as answer what was held, and all that follows up to the next markup."""
        if self._held:
            out.append(Piece(self._held, ANSWER, self._held, malformed=reason))
        self._held, self._state, self._reason, self._channel = "", "broken", reason, ANSWER

    @abstractmethod
    def _text(self, text: str, out: list[Piece]) -> None:
        """Take text without marks."""

    @abstractmethod
    def _mark(self, mark: str, out: list[Piece]) -> None:
        """Take a mark."""

    @abstractmethod
    def _end(self, out: list[Piece]) -> None:
        """Give what is held: nothing follows."""


class CallingMessages(MessageParser):
    """Messages of which some, in the state "call", are read by a `ToolParser`."""

    __slots__ = ("_tools",)

    def __init__(self, style: str, schemas: Tools | ToolSchemas) -> None:
        super().__init__()
        self._tools = ToolParser(style, schemas)

    @property
    def channel(self) -> Channel:
        """What the next text belongs to."""
        return self._tools.channel if self._state == "call" else self._channel

    def check(self) -> None:
        """Check what was restored."""
        super().check()
        check_restored(self._state == "call" or not self._tools.held, "a call goes on outside of its message")

    @property
    def held(self) -> str:
        """The text of a header or of a call, or what may be the beginning of markup."""
        return self._held + self._tools.held + self._ahead


def refused_header(header: str, beginning: re.Pattern[str]) -> str | None:
    """Why what has come of a header begins none, by the form of those that may; None if it may."""
    found = beginning.match(header)
    end = min(found.end() if found else 0, MAX_HEADER)
    return f"{header[: end + 1]!r:.80} is no header of a message" if end < len(header) else None


def parts_by_marks(text: str, marks: tuple[str, ...]) -> tuple[list[tuple[str, bool]], str]:
    """Divide a text at some texts, none of which is the beginning of another.

    Returns:
        The parts, each with whether it is a mark, and what is left at the end because it may become one.

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
