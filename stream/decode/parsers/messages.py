"""Base classes for formats of messages: text is divided at marks, each of which may begin or end a message."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from tokenweir.stream.decode.parsers.pieces import ANSWER, Piece
from tokenweir.stream.decode.parsers.saved import Saved, check_channel, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, first_of, mark_at
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.tools import Tools


class MessageParser(Saved, ABC):
    """Base class of splitters for formats of messages, whose text is divided at marks (`MARKS`).

    Every subclass has the states "header", also the state after a prompt that ends within a message, and "body".
    Some have "broken": text that is emitted as answer with a reason, up to the next markup.
    """

    MARKS: ClassVar[tuple[str, ...]]
    """The texts that divide; no mark is a prefix of another."""

    def __init__(
        self,
        before: Iterable[str] | None = ("assistant",),
        *,
        thinking: Channel = Channel.REASONING,
        tools: Tools | ToolSchemas = (),
    ) -> None:
        """Start at the end of the prompt.

        Args:
            before: The prompt's text after its last mark that begins a message, in parts. None if it has no such mark:
                the answer then begins with a message's text.
            thinking: The channel of messages that are thinking.
            tools: The tools of the request. Empty if they are unknown.

        """
        self._start(tools)
        self._marks = {mark: mark for mark in self.MARKS}  # by their spellings in the text
        self._thinking = thinking
        self._unprocessed = ""  # not processed yet: a possible prefix of a mark
        self._channel: Channel = ANSWER  # of the message
        self._header = ""  # its text so far, the part in the prompt included
        self._held = ""  # text of a header, or of a call that has not begun, that no piece contains yet
        self._reason = ""  # why text is "broken"
        self._state = "body" if before is None else "header"
        for text in before or ():
            self.feed(text)
        self._held = ""  # the prompt's text is not part of the answer

    def spell_marks(self, spellings: Mapping[str, str]) -> None:
        """Find marks in further text by other spellings only; without any, as before. Pieces have the marks themselves."""
        self._marks = {spelling: mark for mark, spelling in spellings.items()} or self._marks

    def take_tag(self, tag: str) -> None:
        """Raise `ValueError`. A subclass whose `skippable` names tags overrides this."""
        raise ValueError(f"no skippable text names {tag!r}")

    def feed(self, text: str) -> list[Piece]:
        out: list[Piece] = []
        parts, self._unprocessed = parts_by_marks(self._unprocessed + text, tuple(self._marks))
        for part, is_mark in parts:
            if is_mark:
                self._mark(self._marks[part], out)
            else:
                self._text(part, out)
        return out

    def finish(self) -> list[Piece]:
        out: list[Piece] = []
        if self._unprocessed:
            unprocessed, self._unprocessed = self._unprocessed, ""
            self._text(unprocessed, out)
        self._end(out)
        return out

    def check(self) -> None:
        check_channel(self._channel)
        may_be_mark = any(mark.startswith(self._unprocessed) for mark in self._marks)
        check_restored(may_be_mark, "text is held that begins no mark")
        check_restored(self._state in ("header", "call") or not self._held, "text is held outside of a header")

    def _break(self, reason: str, out: list[Piece]) -> None:
        """Emit the held text as answer, with the reason why it is malformed; the text up to the next mark follows it."""
        if self._held:
            out.append(Piece(self._held, ANSWER, self._held, malformed=reason))
        self._held, self._state, self._reason, self._channel = "", "broken", reason, ANSWER

    @abstractmethod
    def _start(self, tools: Tools | ToolSchemas) -> None:
        """Set what the format adds to the state, before the prompt's text is processed."""

    @abstractmethod
    def _text(self, text: str, out: list[Piece]) -> None:
        """Process text that contains no mark, and append the final pieces to `out`."""

    @abstractmethod
    def _mark(self, mark: str, out: list[Piece]) -> None:
        """Process one complete mark, and append the final pieces to `out`."""

    @abstractmethod
    def _end(self, out: list[Piece]) -> None:
        """End the answer: append pieces for the held text to `out`."""


class CallingMessages(MessageParser):
    """Base class for formats whose calls (state "call") are read by a `ToolParser`."""

    STYLE: ClassVar[str]
    """The style of the calls."""

    def _start(self, tools: Tools | ToolSchemas) -> None:
        self._tools = ToolParser(self.STYLE, tools)

    @property
    def channel(self) -> Channel:
        return self._tools.channel if self._state == "call" else self._channel

    def check(self) -> None:
        super().check()
        check_restored(self._state == "call" or not self._tools.held, "a call goes on outside of its message")

    @property
    def held(self) -> str:
        """The text that was fed and not emitted: a header, part of a call, or a possible beginning of markup."""
        return self._held + self._tools.held + self._unprocessed


def refused_header(header: str, beginning: re.Pattern[str]) -> str | None:
    """Return the reason why an incomplete header of a message cannot become a valid one; None if it can.

    Args:
        header: The header so far.
        beginning: Matches the longest prefix that can still become a header.

    """
    found = beginning.match(header)
    end = min(found.end() if found else 0, MAX_HEADER)
    return f"{header[: end + 1]!r:.80} is no header of a message" if end < len(header) else None


def parts_by_marks(text: str, marks: tuple[str, ...]) -> tuple[list[tuple[str, bool]], str]:
    """Divide a text at marks, none of which is a prefix of another.

    Returns:
        The parts, each with a flag that is true for marks; and the rest at the end that may become a mark.

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
