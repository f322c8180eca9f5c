"""Block of tool calls that are objects in Python's syntax, in a list or alone: Sarashina's.

    <|tool_calls|>[{'name': 'get_weather', 'arguments': {'city': 'Tokyo'}}]

An object is emitted when it has closed, because its strings are converted as a whole. A list without opening text may be
an ordinary answer, so the request must have the function, if it has tools.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, Literal

from tokenweir.stream.decode.parsers.blocks.literals import json_of_container
from tokenweir.stream.decode.parsers.blocks.stepped_block import BROKEN, State, SteppedBlock
from tokenweir.stream.decode.parsers.pieces import TOOL_CALL, Piece
from tokenweir.stream.decode.parsers.saved import Count, ShortText, check_restored
from tokenweir.stream.decode.parsers.text_search import mark_at

_OBJECT = frozenset({"object"})
_NEXT = {quote: re.compile(rf"[{quote}\\]").search for quote in "'\""} | {"": re.compile(r"['\"\[\]{}()]").search}


STATES = {
    "opened": State("before an object or a list", ("object", "done"), space="held"),
    "object": State("in an object", ("between", "done")),
    "between": State("behind a call", ("opened", "done"), space="held"),
    "done": BROKEN["done"],
}


class PythonObjectBlock(SteppedBlock, states=STATES):
    """Block of calls that are objects in Python's syntax."""

    SAVED: ClassVar[dict[str, Any]] = {
        **SteppedBlock.BASE_SAVED,
        "_state": ShortText,
        "_bare": bool,
        "_in_list": bool,
        "_head": Count,
        "_depth": Count,
        "_quote": Literal["", "'", '"'],
    }

    MAX_HELD = 1 << 15

    def begin(self, opener: str, call: int) -> None:
        super().begin(opener, call)
        self._bare = not opener
        self._in_list = False
        self._head = 0  # where the object begins in the held text
        self._depth = 0  # of open brackets
        self._quote = ""  # of the open string

    def check(self) -> None:
        super().check()
        held = self._undecided.length
        check_restored(held <= self.MAX_HELD, f"more than {self.MAX_HELD} characters are held")
        opened = self._state != "object" or (self._head < held and self._depth > 0)
        check_restored(opened, "an object goes on that has not begun")

    def _goes_on(self) -> bool:
        return False

    def _in_opened(self, text: str, place: int, out: list[Piece]) -> int:
        mark, partial = mark_at(text, place, self._style.opens)
        if partial:
            return self._wait(text, place)
        if mark and self._is_doubled(mark):
            return self._hold(text, place, place + len(mark), out)
        if text[place] == "[" and not self._in_list:
            self._in_list = True
            return self._hold(text, place, place + 1, out)
        if text[place] != "{":
            return self._release(f"{text[place]!r} stands where a call should begin", place, out)
        self._state, self._head, self._depth, self._quote = "object", self._undecided.length, 0, ""
        return place

    def _in_object(self, text: str, place: int, out: list[Piece]) -> int:
        at = place
        while (found := _NEXT[self._quote](text, at)) is not None:
            at, char = found.end(), found[0]
            if char == "\\":
                if at == len(text):
                    end = self._hold(text, place, at - 1, out)
                    return self._wait(text, end) if self._state == "object" else end
                at += 1
            elif char in "'\"":
                self._quote = "" if self._quote else char
            else:
                self._depth += 1 if char in "[{(" else -1
                if self._depth == 0:
                    end = self._hold(text, place, at, out)
                    return self._close_object(end, out) if self._state == "object" else end
        return self._hold(text, place, len(text), out)

    def _close_object(self, place: int, out: list[Piece]) -> int:
        """Emit the held object, which is complete, as a call, or as answer unless it names a function. Return `place`."""
        written = json_of_container(str(self._undecided)[self._head :], _OBJECT)
        call = json.loads(written) if written else {}
        name, arguments = call.get("name"), call.get("arguments", {})
        if not (isinstance(name, str) and name and isinstance(arguments, dict)) or (
            self._bare and self._schemas.refusal(name)
        ):
            return self._release("an object names no function with arguments", place, out)
        out.append(self._named(name, self._undecided.take()))
        out.append(Piece("", TOOL_CALL, json.dumps(arguments, ensure_ascii=False), call=self.call))
        self._end_call(out)
        return place

    def _in_between(self, text: str, place: int, out: list[Piece]) -> int:
        if self._in_list and text[place] in ",]":
            end = self._hold(text, place, place + 1, out)
            if text[place] == "]":
                self._close(out)
            else:
                self._state = "opened"
            return end
        mark, partial = mark_at(text, place, self._style.opens)
        if partial:
            return self._wait(text, place)
        return self._leave_calls(text, place, mark or str(self._undecided).strip(), False, out)
