"""Thinking first, then tool calls in the answer: two splitters as one.

Text goes through the parser of the thinking, and its answer through the parser of the calls. A block of calls goes to
the latter alone, so that tags in arguments stay what they are. When thinking begins, what was held as a possible block
is given as text: neither reaches over the markup of the other.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import msgspec

from tokenweir.stream.decode.parsers.base import ANSWER, REASONING, Passage, Piece
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events import Channel


class ThinkingAndTools:
    """Splits text into thinking, answer and tool calls. A `Splitter`, of two others that it owns."""

    __slots__ = ("_reasoning", "_tools")

    def __init__(self, reasoning: ReasoningParser, tools: ToolParser) -> None:
        self._reasoning = reasoning
        self._tools = tools

    @property
    def channel(self) -> Channel:
        """What the next text belongs to."""
        return REASONING if self._reasoning.channel is REASONING else self._tools.channel

    @property
    def held(self) -> str:
        """The text that may still become markup, or a call."""
        return self._tools.held + self._reasoning.held

    @property
    def passage(self) -> Passage | None:
        """What passes for both, or in a block for the parser of the calls alone: tags there are nothing but text."""
        thinking = self._reasoning.passage
        if thinking is None or self._reasoning.channel is REASONING:  # where the other parser holds nothing
            return thinking
        calls = self._tools.passage
        if calls is None or self._tools.in_block:
            return calls
        # The parser of the calls must see text before a tag where that decides whether a block may begin.
        return _both(thinking, calls, not self._tools.may_be_bare)

    def cross(self, tag: str) -> None:
        """Go on behind a whole tag that `passage` named, which is one of the thinking."""
        self._reasoning.cross(tag)

    def feed(self, text: str) -> list[Piece]:
        """Take more text; give what is final. The joined sources are the text itself."""
        out: list[Piece] = []
        while text:
            if self._tools.in_block:
                given = len(out)
                text = self._tools.feed_block(text, out)
                for piece in out[given:]:
                    self._reasoning.see(piece.source)
            else:  # up to where a block may begin
                end = 1 if self._reasoning.waits else self._tools.opening_end(text)
                self._answer(self._reasoning.feed(text[:end]), out)
                text = text[end:]
                if self._tools.in_block:  # what was looked at behind its opening text is the block's
                    text = self._reasoning.release() + text
        return out

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows."""
        out: list[Piece] = []
        self._answer(self._reasoning.finish(), out)
        return out + self._tools.finish()

    def copy(self) -> Self:
        """Return an independent splitter in the same state."""
        return type(self)(self._reasoning.copy(), self._tools.copy())

    def state(self) -> Any:
        """Return the state as plain data."""
        return [self._reasoning.state(), self._tools.state()]

    def restore(self, state: Any) -> None:
        """Go on in a state that `state` gave."""
        thinking, calls = msgspec.convert(state, tuple[Any, Any])
        self._reasoning.restore(thinking)
        self._tools.restore(calls)

    def _answer(self, pieces: list[Piece], out: list[Piece]) -> None:
        """Send the pieces of answer to the parser of the calls."""
        for piece in pieces:
            if piece.channel is ANSWER:
                out += self._tools.feed(piece.text)
            else:
                if self._tools.held:
                    out += self._tools.finish()
                out.append(piece)


@cache
def _both(thinking: Passage, calls: Passage, tags: bool) -> Passage:
    """Say what passes for both; with the tags of the thinking, or without."""
    until = "".join(sorted({*thinking.until, *calls.until}))
    if not tags:
        return Passage(until)
    return Passage(until, tags=thinking.tags, line_tags=thinking.line_tags, bare=thinking.bare)
