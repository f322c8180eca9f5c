"""Block of tool calls in a style's own form or in JSON, detected by the first characters.

<|tool_call_start|>[name(key="value")]<|tool_call_end|>
<|tool_call_start|>[{"name": "name", "arguments": {"key": "value"}}]<|tool_call_end|>
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import msgspec
from msgspec.structs import replace

from tokenweir.stream.decode.parsers.blocks.json_block import JsonBlock
from tokenweir.stream.decode.parsers.blocks.stepped_block import SteppedBlock
from tokenweir.stream.decode.parsers.pieces import ANSWER, Piece, plain
from tokenweir.stream.decode.parsers.saved import CallNumber, Saved, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, mark_at
from tokenweir.templates.styles.grammars import ParameterStyle, ToolStyle


class EitherBlock(Saved):
    """Block for tool calls that are written either in a style's own form or in JSON.

    The first characters of each block decide which of two inner blocks reads it.
    """

    SAVED: ClassVar[dict[str, Any]] = {
        "call": CallNumber,
        "_opener": ShortText,
        "_left": bool,
        "_unprocessed": ShortText,
        "_chosen": bool,
    }

    def __init__(
        self, own: Callable[[ToolStyle, ToolSchemas], SteppedBlock], style: ToolStyle, schemas: ToolSchemas
    ) -> None:
        """Configure the block for a style of tool calls.

        Args:
            own: Makes the inner block that reads the style's own form.
            style: The style.
            schemas: The JSON schemas of the request's tools, by function name.

        """
        self._own: SteppedBlock = own(style, schemas)
        if isinstance(style, ParameterStyle) and style.name_ends:  # the tag of a call contains its name
            style = replace(style, call_opens="", call_closes="")
        self._json: SteppedBlock = JsonBlock(style, schemas)
        self._call_opens = tuple(filter(None, (style.call_opens,)))
        self._openers = ("", *style.opens)
        self.begin("", -1)

    def begin(self, opener: str, call: int) -> None:
        self.call = call
        self._opener = opener
        self._left = False  # the opening text is dropped
        self._unprocessed = ""  # text before the form is known
        self._block: SteppedBlock | None = None  # the delegate, once known
        self._chosen = False  # the delegate is the JSON block

    def leave_opener(self) -> None:
        self._left = True

    @property
    def done(self) -> bool:
        return self._block is not None and self._block.done

    @property
    def broken(self) -> bool:
        return self._block is not None and self._block.broken

    @property
    def held(self) -> str:
        return self._block.held if self._block else (self._opener * (not self._left)) + self._unprocessed

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`, from the inner block that was chosen; None before that."""
        return self._block.skippable if self._block else None

    def feed(self, text: str, out: list[Piece]) -> str:
        block = self._block
        if block is None:
            self._unprocessed += text
            is_json = self._is_json(self._unprocessed)
            if is_json is None:
                return ""
            text, self._unprocessed = self._unprocessed, ""
            block = self._choose(is_json)
        text = block.feed(text, out)
        self.call = block.call
        return text

    def finish(self) -> list[Piece]:
        """End the answer: return pieces for the text that is held back. A call that has not ended stays incomplete."""
        out: list[Piece] = []
        block = self._block
        if block is None:
            text, self._unprocessed = self._unprocessed, ""
            block = self._choose(is_json=False)
            rest = block.feed(text, out)
            return [*out, *block.finish(), *([plain(rest, ANSWER)] if rest else [])]
        return block.finish()

    def copy(self) -> Self:
        other = super().copy()
        other._own, other._json = self._own.copy(), self._json.copy()
        if self._block is not None:
            other._block = other._json if self._chosen else other._own
        return other

    def state(self) -> Any:
        return [super().state(), self._block.state() if self._block else None]

    def restore(self, state: Any) -> None:
        own, block = msgspec.convert(state, tuple[Any, Any])
        super().restore(own)
        self._block = None
        check_restored(self._opener in self._openers, "the block has another opening text than the style's")
        undecided = block is None and (not self._unprocessed or self._is_json(self._unprocessed) is None)
        check_restored(
            undecided or (block is not None and not self._unprocessed), "text is held that has been decided on"
        )
        if block is not None:
            self._choose(self._chosen).restore(block)

    def _choose(self, is_json: bool) -> SteppedBlock:
        """Start the JSON block if `is_json`, else the block of the style's own form, and return it."""
        self._chosen = is_json
        self._block = block = self._json if is_json else self._own
        block.begin(self._opener, self.call)
        if self._left:
            block.leave_opener()
        return block

    def _is_json(self, text: str) -> bool | None:
        """Return whether the text of a block begins with a JSON object or a list of them; None if more text is needed."""
        place = _after_space(text, 0)
        if self._opener:  # which may stand twice
            mark, partial = mark_at(text, place, (self._opener,))
            if partial and len(text) < MAX_HEADER:
                return None
            place = _after_space(text, place + len(mark))
        if self._opener not in self._call_opens:
            mark, partial = mark_at(text, place, self._call_opens)
            if partial and len(text) < MAX_HEADER:
                return None
            place = _after_space(text, place + len(mark))
        if text.startswith("[", place):
            place = _after_space(text, place + 1)
        if place == len(text):
            return None if place < MAX_HEADER else False
        return text[place] == "{"


def _after_space(text: str, place: int) -> int:
    return len(text) - len(text[place:].lstrip())
