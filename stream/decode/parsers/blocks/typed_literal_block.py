"""Block of calls whose arguments are literals typed by the tools' schemas: Gemma's.

    call:name{zip:90210,days:3}            Gemma 4: a number where the schema wants a string is one
    call:name{zip:<escape>90210<escape>,days:<escape>3<escape>}    FunctionGemma: all values are quoted

A value without a declared type gets the type of its literal. A quoted string is emitted incrementally. A value without
an opening quote extends to the closing quote or to the next argument. Models also write JSON in this form, and Python's
quotes: a key or a value in them is a string if it closes, and a member or an end follows.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from msgspec.structs import replace

from tokenweir.stream.decode.parsers.blocks import literal_block
from tokenweir.stream.decode.parsers.blocks.coercion import STRING, Types, json_of, quoted
from tokenweir.stream.decode.parsers.blocks.literal_block import LiteralBlock
from tokenweir.stream.decode.parsers.blocks.literals import MAX_LOOK, json_of_argument, text_of_literal
from tokenweir.stream.decode.parsers.blocks.stepped_block import OTHER_THAN_SPACE, State
from tokenweir.stream.decode.parsers.pieces import TOOL_CALL, Piece
from tokenweir.stream.decode.parsers.saved import ShortText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, find_mark, first_match, first_of, mark_at

_QUOTES = "\"'"
_QUOTED = re.compile(
    r"""(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\s*(?:(?P<after>[,:}\]])|\Z)"""
    r"""|(?P<cut>'(?:[^'\\]|\\.)*\\?\Z|"(?:[^"\\]|\\.)*\\?\Z)""",
    re.DOTALL,
)
_FOLLOWS = re.compile(r"\s*(?:[}\]]|[^\s\"'<>()\[\]{},:=]+\s*:|(?P<cut>(?:[^\s\"'<>()\[\]{},:=]+\s*)?\Z))")


STATES = literal_block.STATES | {
    "value": replace(literal_block.STATES["value"], then=(*literal_block.STATES["value"].then, "quoted")),
    "quoted": State("in a value in quotes that is emitted when it has closed", ("after",)),
}


class TypedLiteralBlock(LiteralBlock, states=STATES):
    """`LiteralBlock` with values of the types that the tools' schemas declare."""

    SAVED: ClassVar[dict[str, Any]] = {**LiteralBlock.SAVED, "_key": ShortText}

    OTHER_QUOTES = _QUOTES

    def begin(self, opener: str, call: int) -> None:
        super().begin(opener, call)
        self._key = ""  # of the current argument

    def _in_first(self, text: str, place: int, out: list[Piece]) -> int:
        if text[place] in _QUOTES:
            ends, quoted_text = self._quoted_text(text, place, ":")
            if not ends:
                return self._wait(text, place)
            if quoted_text is not None:
                self._begin_arguments(out)
                return place
        return super()._in_first(text, place, out)

    def _in_key(self, text: str, place: int, out: list[Piece]) -> int:
        if text[place] in _QUOTES:
            ends, key = self._quoted_text(text, place, ":")
            if not ends:
                return self._wait(text, place)
            if key is not None:
                self._state = "assigns"
                self._key = key if self._stack == "a" else self._key
                return place + self._emit_argument(text[place : place + ends], quoted(key), out)
        end = super()._in_key(text, place, out)
        if self._state == "assigns" and self._stack == "a":
            self._key = text[place:end]
        return end

    def _in_value(self, text: str, place: int, out: list[Piece]) -> int:
        if text[place] in _QUOTES:
            ends, value = self._quoted_text(text, place, ",}]")
            if not ends:
                return self._wait(text, place)
            if value is not None:
                self._state = "after"
                types = self._types() if self._stack == "a" else STRING
                json = json_of(value, types) if self._style.quotes_all else quoted(value)
                return place + self._emit_argument(text[place : place + ends], json, out)
            if ends > MAX_LOOK:  # a long string
                self._state, self._quote, self._is_key = "text", text[place], False
                return place + self._emit_argument(text[place], '"', out)
        quote, _ = mark_at(text, place, self._style.quotes)
        if not (quote and self._style.quotes_all and self._stack == "a" and self._types() != STRING):
            return super()._in_value(text, place, out)
        self._state, self._quote = "quoted", quote
        return place + self._emit_argument(quote, "", out)

    def _word_value(self, quote: str) -> str:
        return (None if quote else self._word_as_json(self._word.rstrip())) or quoted(self._word)

    def _quoted_text(self, text: str, place: int, after: str) -> tuple[int, str | None]:
        """Read a string literal of JSON or Python at index `place`, which must be followed by one of the characters `after`.

        Returns:
            The length of the literal and its text. `(0, None)` if more text is needed; a length above `MAX_LOOK` and
            None for a literal that is longer; `(1, None)` if there is no such literal.

        """
        text = text[place : place + MAX_LOOK]
        block, closer, _ = text.partition(self._style.closes)
        found = _QUOTED.match(block)
        if found is None or (closer and found["after"] is None):
            return 1, None
        if found["after"] is None and len(text) < MAX_LOOK:
            return 0, None
        if found["cut"] is not None:
            return MAX_LOOK + 1, None
        if not found["after"] or found["after"] not in after:
            return 1, None
        kind = "single" if found["double"] is None else "double"
        return found.end(kind) + 1, text_of_literal(text[: found.end(kind) + 1])

    def _word_end(self, text: str, place: int) -> tuple[int, str, bool]:
        marks = (*self._style.quotes, *filter(None, (self._style.closes,)))
        search = first_of((",", "]", "}", *marks))
        while (found := search(text, place)) is not None:
            place = found.start()
            mark, partial = mark_at(text, place, marks)
            if mark or partial or text[place] in "]}":
                return place, mark if mark in self._style.quotes else "", not partial
            if text[place] == "," and (ends := self._ends_at_comma(text, place + 1)) is not False:
                return place, "", ends is not None
            place += 1
        return len(text), "", False

    def _ends_at_comma(self, text: str, place: int) -> bool | None:
        """Decide by lookahead whether a value ends at the comma before index `place`; None if more text is needed."""
        if self._stack[-1] == "[":
            return True
        text = text[place : place + MAX_HEADER]
        unknown = None if len(text) < MAX_HEADER else False
        quote, partial = mark_at(text, first_match(OTHER_THAN_SPACE, text), self._style.quotes)
        if quote or partial:
            return True if quote else unknown
        found = _FOLLOWS.match(text)
        if found is None:
            return False
        return True if found["cut"] is None else unknown

    def _in_quoted(self, text: str, place: int, out: list[Piece]) -> int:
        end, quote = find_mark(text, place, (self._quote,))
        self._undecided.add(text[place:end])
        if not quote:
            return self._wait(text, end)
        value = self._undecided.take()
        out.append(Piece(value + quote, TOOL_CALL, json_of_argument(value, self._types()), call=self.call))
        self._state = "after"
        return end + len(quote)

    def _word_as_json(self, word: str) -> str | None:
        types = self._types() if self._stack == "a" else frozenset()
        return json_of(word, types) if types else super()._word_as_json(word)

    def _types(self) -> Types:
        return self._schemas.arguments(self._name).member(self._key).types
