"""Base class of blocks of tool calls: a state machine with one step per state, and held text."""

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
"""Search for a character other than JSON white space."""

Step = Callable[[Any, str, int, list[Piece]], int]
"""Method that processes text from a place on, adds pieces to a list, and returns the place of the rest."""


class SteppedBlock(Saved):
    """Base class of `Block` state machines.

    Attributes:
        call: The number of the call whose name was emitted last.

    """

    __slots__ = ("_ahead", "_before_end", "_reason", "_schemas", "_state", "_style", "_undecided", "call")

    STEPS: ClassVar[Mapping[str, Step]]
    """The step of each state except "done"; in "broken", the rest of the block is emitted as answer."""

    GIVEN: ClassVar[frozenset[str]] = frozenset({"broken"})
    """The states in which only a possible prefix of markup is held."""

    HELD: ClassVar[dict[str, Any]] = {
        "_undecided": HeldText,
        "_ahead": ShortText,
        "_reason": ShortText,
        "call": CallNumber,
    }
    """The mutable attributes that all these blocks share."""

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Configure the block for a style.

        Args:
            style: The style of calls.
            schemas: The request's tools; empty if they are unknown.

        """
        self._style = style
        self._schemas = schemas
        self._before_end = _before_end(style)
        self._undecided = HeldText()  # processed text that is ambiguous and not emitted yet
        self.begin("", -1)

    def begin(self, opener: str, call: int) -> None:
        """Start a block."""
        self._state = "opened"
        self._undecided.replace(opener)
        self._ahead = ""  # not processed yet: a possible prefix of markup
        self._reason = ""  # why the block is malformed
        self.call = call

    def leave_opener(self) -> None:
        """Drop the opening text, which is part of the prompt and not of the answer."""
        self._undecided.take()

    def check(self) -> None:
        """Check a restored state; see `Saved.check`."""
        check_restored(not self.done, "a block goes on that has ended")
        check_restored(self._state not in self.GIVEN or not self._undecided.length, "text is held that has been given")

    @property
    def done(self) -> bool:
        """Whether the block has ended."""
        return self._state == "done"

    @property
    def broken(self) -> bool:
        """Whether the rest of the block is emitted as answer."""
        return self._state == "broken"

    @property
    def held(self) -> str:
        """The text that no piece contains yet."""
        return str(self._undecided) + self._ahead

    def feed(self, text: str, out: list[Piece]) -> str:
        """Process more text, add the final pieces to `out`, and return the text after the block."""
        text = self._ahead + text
        self._ahead = ""
        place = 0
        while place < len(text) and self._state != "done":
            place = self.STEPS[self._state](self, text, place, out)
        return text[place:]

    def _end_passage(self, most: int | None = None) -> Passage | None:
        """Return the passage where the block may end: white space, as long as at most `most` characters are held."""
        return None if self._ahead or not (most is None or self._room(most)) else self._before_end

    def _room(self, most: int) -> bool:
        """Return whether all skippable text can be held within `most` characters, at one byte a character."""
        return self._undecided.length + MAX_PASSED <= most

    def _hold_back(self, text: str, place: int, end: int) -> int:
        """Hold processed text; return the place after it."""
        self._undecided.add(text[place:end])
        return end

    def _wait(self, text: str, place: int) -> int:
        """Keep the rest of a text until more has come."""
        self._ahead = text[place:]
        return len(text)

    def _broken(self, text: str, place: int, out: list[Piece]) -> int:
        """Emit the rest as answer, up to the end of the block or the start of a call or another block."""
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
        """Count a call and return the piece with its name."""
        self.call += 1
        return Piece(source, TOOL_CALL, "", name, self.call)

    def _pass_json(self, value: JsonValue, text: str, place: int, out: list[Piece]) -> int:
        """Emit the text of a JSON value as arguments; return the place after it."""
        end = value.feed(text, place)
        if end > place:
            out.append(Piece(text[place:end], TOOL_CALL, text[place:end], call=self.call))
        return end

    def _end_call(self, out: list[Piece]) -> None:
        """Emit the completion of a call."""
        out.append(Piece("", TOOL_CALL, "", call=self.call, complete=True))
        self._state = "between"

    def _close(self, out: list[Piece]) -> None:
        """Remove the closing markup of a block."""
        out.append(markup(self._undecided.take()))
        self._state = "done"


def _before_end(style: ToolStyle) -> Passage | None:
    """Return the passage between markup: white space, up to the text that ends a block."""
    others = (*style.opens, style.call_opens, style.call_closes, *style.tails, *style.separators)
    if not style.closes or any(mark.startswith(style.closes) for mark in others):
        return None
    return Passage(None, held=True, closers=(style.closes,))
