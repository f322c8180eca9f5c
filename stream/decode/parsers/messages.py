"""What formats of messages have in common: text is divided at the marks, any of which may begin or end a message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from tokenweir.stream.decode.parsers.base import ANSWER, Piece, Saved, check_channel, mark_at
from tokenweir.stream.events import Channel


class MessageParser(Saved):
    """Splits text at marks. A class of this kind is a `Splitter`."""

    __slots__ = ("_ahead", "_channel")

    MARKS: ClassVar[tuple[str, ...]]
    """Texts that begin with `<`; one that is the beginning of another comes after it."""

    def __init__(self) -> None:
        self._ahead = ""  # not looked at yet: the beginning of what may become a mark
        self._channel: Channel = ANSWER  # of the message

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

    def restore(self, state: Any) -> None:
        """Go on in a state that `state` gave."""
        super().restore(state)
        check_channel(self._channel)

    def _text(self, text: str, out: list[Piece]) -> None:
        """Take text without marks."""
        raise NotImplementedError

    def _mark(self, mark: str, out: list[Piece]) -> None:
        """Take a mark."""
        raise NotImplementedError

    def _end(self, out: list[Piece]) -> None:
        """Give what is held: nothing follows."""
        raise NotImplementedError


def parts_by_marks(text: str, marks: Iterable[str]) -> tuple[list[tuple[str, bool]], str]:
    """Divide a text at some texts, all of which begin with `<`; one that is the beginning of another must come after it.

    Returns:
        The parts, each with whether it is a mark, and what is left at the end because it may become one.

    """
    parts: list[tuple[str, bool]] = []
    place = 0
    while place < len(text):
        end = text.find("<", place)
        end = len(text) if end < 0 else end
        if end > place:
            parts.append((text[place:end], False))
        else:
            mark, partial = mark_at(text, place, marks)
            if partial:
                return parts, text[place:]
            end = place + (len(mark) or 1)
            parts.append((text[place:end], bool(mark)))
        place = end
    return parts, ""
