"""Thinking first, then tool calls in the answer: two splitters as one.

Text goes through the parser of the thinking, and its answer through the parser of the calls. A block of calls goes to
the latter alone, so that tags in arguments stay what they are. When thinking begins, what was held as a possible block
is given as text: neither reaches over the markup of the other.
"""

from __future__ import annotations

import re

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.base import Piece
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
        return Channel.REASONING if self._reasoning.channel is Channel.REASONING else self._tools.channel

    @property
    def held(self) -> str:
        """The text that may still become markup, or a call."""
        return self._tools.held + self._reasoning.held

    @property
    def calm(self) -> bool:
        """Whether text without any of `starts`, that `arguments` take, passes whole; `skim` must see it."""
        return self._reasoning.calm and self._tools.calm

    @property
    def arguments(self) -> JsonValue | None:
        """The arguments of a call that are being read, in which tags are nothing but text."""
        return self._tools.arguments

    @property
    def starts(self) -> frozenset[str]:
        """The characters that something which counts now begins with."""
        if self._reasoning.channel is Channel.REASONING:
            return self._reasoning.starts
        if self._tools.in_block:
            return self._tools.starts
        return self._reasoning.starts | self._tools.starts

    def split(self, text: str) -> list[Piece]:
        """Take more text; give what is final. The joined sources are the text itself."""
        out: list[Piece] = []
        while text:
            if self._tools.in_block:
                given = len(out)
                text = self._tools.split_block(text, out)
                for piece in out[given:]:  # where a line begins matters to tags
                    self._reasoning.skim(piece.source)
            else:  # up to where a block may begin
                end = re.search("[" + "".join(map(re.escape, self._tools.ends)) + "]", text)
                length = end.end() if end else len(text)
                self._answer(self._reasoning.split(text[:length]), out)
                text = text[length:]
        return out

    def skim(self, text: str) -> None:
        """Take text that passes whole while calm."""
        self._reasoning.skim(text)
        if self._reasoning.channel is Channel.ANSWER:
            self._tools.skim(text)

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows."""
        out: list[Piece] = []
        self._answer(self._reasoning.finish(), out)
        return out + self._tools.finish()

    def copy(self) -> ThinkingAndTools:
        """Return an independent splitter in the same state."""
        return ThinkingAndTools(self._reasoning.copy(), self._tools.copy())

    def _answer(self, pieces: list[Piece], out: list[Piece]) -> None:
        """Send the pieces of answer to the parser of the calls."""
        for piece in pieces:
            if piece.channel is Channel.ANSWER:
                out += self._tools.split(piece.text)
            else:
                out += self._tools.finish()
                out.append(piece)
