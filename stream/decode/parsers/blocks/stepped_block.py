"""What all blocks of tool calls have in common: a state, a step for each state, and text that is held."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.base import (
    ANSWER,
    MAX_PASSED,
    TOOL_CALL,
    CallNumber,
    Passage,
    Piece,
    Saved,
    ShortText,
    check_restored,
    find_mark,
    markup,
)
from tokenweir.stream.decode.parsers.blocks.text_buffer import HeldText
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.templates.styles.grammars import ToolStyle

OTHER_THAN_SPACE = re.compile(r"[^ \t\n\r]").search
"""Finds what is no white space of JSON."""

Step = Callable[[Any, str, int, list[Piece]], int]
"""A method that takes text from a place on, adds pieces to a list, and returns the place after what it took."""


class SteppedBlock(Saved):
    """Blocks that are read step by step. A class of this kind is a `Block`.

    Attributes:
        call: The number of the call whose name went out last.

    """

    __slots__ = ("_ahead", "_before_end", "_reason", "_schemas", "_state", "_style", "_undecided", "call")

    STEPS: ClassVar[Mapping[str, Step]]
    """The step of each state but "done"; in "broken", what is left of the block goes out as answer."""

    GIVEN: ClassVar[frozenset[str]] = frozenset({"broken"})
    """The states in which nothing but the beginning of markup is held."""

    HELD: ClassVar[dict[str, Any]] = {
        "_undecided": HeldText,
        "_ahead": ShortText,
        "_reason": ShortText,
        "call": CallNumber,
    }
    """What every block of this kind saves, beside its state."""

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Read blocks of a style.

        Args:
            style: How the model writes calls.
            schemas: The request's tools; none are known if this is empty.

        """
        self._style = style
        self._schemas = schemas
        self._before_end = _before_end(style)
        self._undecided = HeldText()  # looked at and not given: what is not yet known for what it is
        self.begin("", -1)

    def begin(self, opener: str, call: int) -> None:
        """Begin a block."""
        self._state = "opened"
        self._undecided.replace(opener)
        self._ahead = ""  # not looked at yet: the beginning of what may become markup
        self._reason = ""  # why the block has broken
        self.call = call

    def leave_opener(self) -> None:
        """Leave the opening text out: the prompt has given it, so it is no part of the answer."""
        self._undecided.take()

    def check(self) -> None:
        """Check what was restored."""
        check_restored(not self.done, "a block goes on that has ended")
        check_restored(self._state not in self.GIVEN or not self._undecided.length, "text is held that has been given")

    @property
    def done(self) -> bool:
        """Whether the block has ended."""
        return self._state == "done"

    @property
    def broken(self) -> bool:
        """Whether what is left of the block goes out as answer."""
        return self._state == "broken"

    @property
    def held(self) -> str:
        """The text that has not been given yet."""
        return str(self._undecided) + self._ahead

    def feed(self, text: str, out: list[Piece]) -> str:
        """Take more text, add what is final to `out`, and return the text after the block."""
        text = self._ahead + text
        self._ahead = ""
        place = 0
        while place < len(text) and self._state != "done":
            place = self.STEPS[self._state](self, text, place, out)
        return text[place:]

    def _end_passage(self, most: int | None = None) -> Passage | None:
        """What may pass where the block may end: white space, of which all that is held must be at most so much."""
        return None if self._ahead or not (most is None or self._room(most)) else self._before_end

    def _room(self, most: int) -> bool:
        """Whether all text that may pass can be held, at a character a byte."""
        return self._undecided.length + MAX_PASSED <= most

    def _hold_back(self, text: str, place: int, end: int) -> int:
        """Hold text that has been looked at; return the place after it."""
        self._undecided.add(text[place:end])
        return end

    def _wait(self, text: str, place: int) -> int:
        """Look at the rest of a text again when more has come."""
        self._ahead = text[place:]
        return len(text)

    def _broken(self, text: str, place: int, out: list[Piece]) -> int:
        """Give what is left as answer, up to the block's end or to where a call or another block begins."""
        style = self._style
        begins = (*style.opens, *filter(None, (style.call_opens,)))
        end, mark = find_mark(text, place, (style.closes or style.call_closes, *begins))
        if mark not in begins:
            end += len(mark)
        if end > place:
            out.append(Piece(text[place:end], ANSWER, text[place:end], malformed=self._reason))
        if mark:
            self._state = "done" if mark not in begins or mark in style.opens else "opened"
            return end
        return self._wait(text, end)

    def _named(self, name: str, source: str) -> Piece:
        """Count a call and give its name."""
        self.call += 1
        return Piece(source, TOOL_CALL, "", name, self.call)

    def _pass_json(self, value: JsonValue, text: str, place: int, out: list[Piece]) -> int:
        """Give what belongs to a JSON value as arguments; return the place after it."""
        end = value.feed(text, place)
        if end > place:
            out.append(Piece(text[place:end], TOOL_CALL, text[place:end], call=self.call))
        return end

    def _end_call(self, out: list[Piece]) -> None:
        """Say that a call is whole."""
        out.append(Piece("", TOOL_CALL, "", call=self.call, complete=True))
        self._state = "between"

    def _close(self, out: list[Piece]) -> None:
        """Cut out the end of a block."""
        out.append(markup(self._undecided.take()))
        self._state = "done"


def _before_end(style: ToolStyle) -> Passage | None:
    """Say what may pass where only white space or other markup may come: white space, up to the text that ends a block."""
    others = (*style.opens, style.call_opens, style.call_closes, *style.tails, *style.separators)
    if not style.closes or any(mark.startswith(style.closes) for mark in others):
        return None
    return Passage(None, held=True, closers=(style.closes,))
