"""Tool calls apart from the answer: text in, pieces out, each call's name first and then its arguments as they come.

A call's name goes out when its arguments begin, or when its object ends without any. Before that it may still turn
out to be no call; then its text goes out as answer, with the reason. If it breaks afterwards, a piece says so, and
what is left of its block goes out as answer with the same reason. `complete` is said of a call when the JSON of its
object, or of its arguments under a header, has closed and would parse; what is missing of the markup after that does
not matter. Arguments are passed on as they were written: where a model wrote them as a string with JSON in it, that
string is the text. A call that has none is given `{}`.

At most `MAX_HELD` characters are held back: those of one call before its name is known.
"""

from __future__ import annotations

from copy import copy

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.base import Piece, mark_at, plain
from tokenweir.stream.decode.parsers.tool_block import ToolBlock, first_of
from tokenweir.stream.events import Channel
from tokenweir.templates.tool_styles import ToolStyle, tool_style_of


class ToolParser:
    """Splits an answer's text into text and tool calls. A `Splitter`."""

    __slots__ = ("_ahead", "_bare", "_begins", "_block", "_call", "_style")

    def __init__(self, style: str | ToolStyle) -> None:
        """Start at the beginning of an answer.

        Args:
            style: How the model writes calls, or the name of a style in `TOOL_STYLES` or of a family of models.

        Raises:
            ValueError: No style has the name.

        """
        self._style = style = tool_style_of(style)
        self._begins = first_of((*style.opens, "{") if style.bare else style.opens)
        self._bare = style.bare  # only white space so far: an object here would be a call
        self._ahead = ""  # the beginning of what may become an opening text
        self._block: ToolBlock | None = None
        self._call = -1  # the number of the last call

    @property
    def channel(self) -> Channel:
        """What the next text belongs to."""
        return Channel.ANSWER if self._block is None or self._block.broken else Channel.TOOL_CALL

    @property
    def held(self) -> str:
        """The text that may still be part of a call, or of its markup."""
        return self._ahead if self._block is None else self._block.held

    @property
    def calm(self) -> bool:
        """Whether text without any of `starts`, that `arguments` take, passes whole; `skim` must see it."""
        return not self._ahead if self._block is None else self._block.arguments is not None

    @property
    def arguments(self) -> JsonValue | None:
        """The arguments that are being read, once the call's name has gone out."""
        return None if self._block is None else self._block.arguments

    @property
    def starts(self) -> frozenset[str]:
        """The characters that a block begins with; in a block, there are none."""
        if self._block is not None:
            return frozenset()
        return frozenset(text[0] for text in self._style.opens) | ({"{"} if self._bare else frozenset())

    @property
    def ends(self) -> frozenset[str]:
        """The characters with which a block's opening text ends."""
        return frozenset(text[-1] for text in self._style.opens) | ({"{"} if self._bare else frozenset())

    @property
    def in_block(self) -> bool:
        """Whether a block of calls has begun, and its end has not come."""
        return self._block is not None

    def split(self, text: str) -> list[Piece]:
        """Take more text; give what is final. The joined sources are the text itself."""
        out: list[Piece] = []
        while text:
            text = self._split_answer(text, out) if self._block is None else self.split_block(text, out)
        return out

    def split_block(self, text: str, out: list[Piece]) -> str:
        """Take text of a block, which has begun; add what is final to `out`, and return the text after the block."""
        assert self._block is not None
        text = self._block.split(text, out)
        if self._block.done:
            self._call, self._block = self._block.call, None
        return text

    def skim(self, text: str) -> None:
        """Take text that passes whole while calm."""
        if self._bare and text.strip():
            self._bare = False

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows that could make a call of it."""
        block, self._block = self._block, None
        if block is not None:
            self._call = block.call
            return block.finish()
        ahead, self._ahead = self._ahead, ""
        return [plain(ahead, Channel.ANSWER)] if ahead else []

    def copy(self) -> ToolParser:
        """Return an independent parser in the same state."""
        other = copy(self)
        other._block = self._block.copy() if self._block else None
        return other

    def _split_answer(self, text: str, out: list[Piece]) -> str:
        """Take text outside of blocks; return what comes after the next opening text."""
        text = self._ahead + text
        self._ahead = ""
        at, opener, partial, bare = 0, "", False, False
        while (begin := self._begins(text, at)) is not None:
            at = begin.start()
            bare = self._bare and text[at] == "{" and not text[:at].strip()
            opener, partial = mark_at(text, at, self._style.opens)
            if opener or partial or bare:
                break
            at += 1
        else:
            at = len(text)
        if at:
            self.skim(text[:at])
            out.append(plain(text[:at], Channel.ANSWER))
        if opener or bare:
            self._bare = False
            self._block = ToolBlock(self._style, opener, self._call)
            return text[at + len(opener) :]
        self._ahead = text[at:]
        return ""
