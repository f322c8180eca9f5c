"""A block of calls whose arguments are literals of the types that the tools' schemas declare: Gemma's.

    call:name{zip:90210,days:3}            Gemma 4: a number where the schema wants a string is one
    call:name{zip:<escape>90210<escape>,days:<escape>3<escape>}    FunctionGemma: all values are quoted

What the schema says nothing of is what it looks like. A value that can only be a string goes out as it comes.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from tokenweir.stream.decode.parsers.base import TOOL_CALL, Piece, find_mark, mark_at
from tokenweir.stream.decode.parsers.coercion import STRING, Types, json_of, parameter_types
from tokenweir.stream.decode.parsers.literal_block import LiteralBlock


class TypedLiteralBlock(LiteralBlock):
    """Splits the text of blocks. A `Block`, with one more state: "quoted", a value that goes out when it has closed."""

    __slots__ = ("_key",)

    SAVED: ClassVar[dict[str, Any]] = {
        **LiteralBlock.SAVED,
        "_state": LiteralBlock.SAVED["_state"] | Literal["quoted"],
        "_key": str,
    }

    def begin(self, opener: str, call: int) -> None:
        """Begin a block."""
        super().begin(opener, call)
        self._key = ""  # of the argument that is read

    def _in_key(self, text: str, place: int, out: list[Piece]) -> int:
        end = super()._in_key(text, place, out)
        if self._state == "assigns" and self._stack == "a":
            self._key = text[place:end]
        return end

    def _value(self, text: str, place: int, out: list[Piece]) -> int:
        quote, _ = mark_at(text, place, self._style.quotes)
        if not (quote and self._style.quotes_all and self._stack == "a" and self._types() != STRING):
            return super()._value(text, place, out)
        self._state, self._quote = "quoted", quote
        return place + self._give(quote, "", out)

    def _quoted(self, text: str, place: int, out: list[Piece]) -> int:
        end, quote = find_mark(text, place, (self._quote,))
        self._undecided.add(text[place:end])
        if not quote:
            return self._wait(text, end)
        value = self._undecided.take()
        out.append(Piece(value + quote, TOOL_CALL, json_of(value, self._types()), call=self.call))
        self._state = "after"
        return end + len(quote)

    def _meant(self, word: str) -> str | None:
        types = self._types() if self._stack == "a" else frozenset()
        return json_of(word, types) if types else super()._meant(word)

    def _types(self) -> Types:
        return parameter_types(self._schemas.get(self._name, {}), self._key)


TypedLiteralBlock.STEPS = {
    **LiteralBlock.STEPS,
    "key": TypedLiteralBlock._in_key,
    "value": TypedLiteralBlock._value,
    "quoted": TypedLiteralBlock._quoted,
}
