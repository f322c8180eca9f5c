"""Starts and ends of calls in a `ParameterStyle`; `parameter_block.py` reads the arguments between.

The function's name is emitted once the following text has shown that this is a call: a parameter, an object, or the end
of a call without arguments.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tokenweir.stream.decode.parsers.blocks.stepped_block import State, SteppedBlock
from tokenweir.stream.decode.parsers.pieces import TOOL_CALL, Piece, markup
from tokenweir.stream.decode.parsers.saved import ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, find_mark, mark_at
from tokenweir.templates.styles.grammars import ParameterStyle, ToolStyle

_NAMING = ("name", "tail", "first")
_BEGINNING = re.compile(r"\s*[^\s<>{}\[\]\"'=,()]*\s*")  # prefixes of names


STATES = {
    "opened": State("before a call", ("unnamed", "done"), space="held"),
    "unnamed": State("before the call's name", ("name",), space="held"),
    "name": State("in the name", ("tail", "first", "between", "broken", "done")),
    "tail": State("behind the name, in its tag", ("first", "broken", "done")),
    "first": State(
        "before a parameter or the end of the call; the name is held",
        ("parameters", "broken", "done"),
        space="held",
    ),
    "between": State("behind a call", ("opened", "unnamed", "broken", "done"), space="held"),
}


class TaggedCalls(SteppedBlock, states=STATES):
    """Base class of blocks of calls in tags: its steps read everything except the arguments.

    A subclass reads the arguments, from the state "parameters" on.
    """

    BASE_SAVED: ClassVar[dict[str, Any]] = {**SteppedBlock.BASE_SAVED, "_name": ShortText, "_empty": bool}

    _style: ParameterStyle

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Configure the block for a style; raise `TypeError` unless it is a `ParameterStyle`."""
        if not isinstance(style, ParameterStyle):
            raise TypeError(f"tool style {style.name!r} is no ParameterStyle")
        super().__init__(style, schemas)
        self._after_name = tuple(filter(None, (style.call_closes, style.closes, style.key_opens, style.object_opens)))

    def begin(self, opener: str, call: int) -> None:
        """Start a block.

        Args:
            opener: The text that has opened the block; it may also open the first call.
            call: The number of the last call of the answer, -1 before the first one.

        """
        super().begin(opener, call)
        if opener == self._style.call_opens or not self._style.call_opens:
            self._state = "unnamed"
        self._name = ""  # of the called function
        self._empty = True  # the call has no arguments so far

    def begin_call(self, name: str, header: str, call: int) -> None:
        """Start a block that is one call, whose name stands in a header that the caller has read.

        Args:
            name: The function's name.
            header: The text of the header, which is held.
            call: The number of the last call of the answer, -1 before the first one.

        """
        self.begin(header, call)
        self._state, self._name = "first", name

    def check(self) -> None:
        super().check()
        check_restored(self._state != "tail" or bool(self._style.name_tail), "the style has no 'tail'")

    # -- a step per state: processes text from `place`, adds pieces to `out`, returns the place of the rest ------------

    def _in_opened(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        marks = (style.call_opens, *style.leads, style.closes, *style.opens)
        mark, partial = mark_at(text, place, filter(None, marks))
        if partial:
            return self._wait(text, place)
        begins_block = mark in style.opens and mark != style.call_opens
        if not mark or (begins_block and not self._is_doubled(mark)):
            return self._release(f"{text[place]!r} stands where a call should begin", place, out)
        end = self._hold(text, place, place + len(mark), out)
        if mark == style.closes:
            self._close(out)
        elif mark == style.call_opens:
            self._state = "unnamed"
        return end

    def _in_unnamed(self, text: str, place: int, out: list[Piece]) -> int:
        mark, partial = mark_at(text, place, (self._style.call_opens or self._style.opens[0],))
        if partial:
            return self._wait(text, place)
        if mark and self._is_doubled(mark):
            return self._hold(text, place, place + len(mark), out)
        self._state, self._name = "name", ""
        return place

    def _in_name(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        end, mark = find_mark(text, place, (*style.name_ends, *style.name_stops))
        if end - place > (room := max(0, MAX_HEADER - len(self._name))):
            end = self._hold(text, place, place + room, out)
            return self._release(f"a function has a name of more than {MAX_HEADER} characters", end, out)
        self._name += text[place:end]
        beginning = None if style.entities else _BEGINNING.match(self._name)
        if beginning and (after := len(self._name) - beginning.end()):
            end = self._hold(text, place, end - after, out)
            name = self._name[: beginning.end() + 1].strip()
            return self._release(f"{name!r:.80} is no name of a function", end, out)
        end = self._hold(text, place, end, out)
        if not mark:
            return self._wait(text, end)
        self._name = self._unescaped(self._name.strip())
        if not self._name:
            return self._release("a function has no name", end, out)
        if mark in style.name_ends:
            end = self._hold(text, end, end + len(mark), out)
        self._state = "tail" if style.name_tail else "first"
        if mark.endswith("/>"):
            self._announce(out)
            self._complete("{}", out)
        return end

    def _in_tail(self, text: str, place: int, out: list[Piece]) -> int:
        end, mark = find_mark(text, place, (self._style.name_tail,))
        if end - place > (room := max(0, 2 * MAX_HEADER - self._undecided.length)):
            end = self._hold(text, place, place + room, out)
            return self._release(f"the tag of {self._name!r:.80} does not end", end, out)
        end = self._hold(text, place, end + len(mark), out)
        if not mark:
            return self._wait(text, end)
        self._state = "first"
        return end

    def _in_first(self, text: str, place: int, out: list[Piece]) -> int:
        mark, partial = mark_at(text, place, self._after_name)
        if partial:
            return self._wait(text, place)
        if not mark and text[place] != "{":
            return self._release(f"{text[place]!r} stands where a parameter should", place, out)
        self._announce(out)
        return place

    def _in_between(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        ends = (style.closes, style.call_closes, *style.tails)  # the end of a call follows an object
        mark, partial = mark_at(text, place, filter(None, (*ends, style.call_opens, *style.leads, *style.opens)))
        if partial:
            return self._wait(text, place)
        if mark and mark in ends:
            end = self._hold(text, place, place + len(mark), out)
            out.append(markup(self._undecided.take()))
            self._state = "done" if mark == style.closes else "between"
            return end
        if mark and mark in (style.call_opens, *style.leads):
            self._state = "opened" if mark in style.leads else "unnamed"
            return self._hold(text, place, place + len(mark), out)
        return self._leave_calls(text, place, mark, bool(style.closes), out)

    # -- shared parts of the steps -------------------------------------------------------------------------------------

    def _announce(self, out: list[Piece]) -> None:
        """Emit the piece with the name of a call, and continue before its parameters."""
        self._empty = True
        out.append(self._named(self._name, self._undecided.take()))
        self._state = "parameters"

    def _complete(self, text: str, out: list[Piece]) -> None:
        """Emit `text`, the end of the arguments in JSON, and the piece that marks the call as complete."""
        out.append(Piece(self._undecided.take(), TOOL_CALL, text, call=self.call))
        self._end_call(out)

    def _goes_on(self) -> bool:
        """Return whether another call may begin behind text that is not a call."""
        style = self._style
        return self._state != "opened" and (self._state not in _NAMING or style.call_opens not in ("", *style.opens))

    def _unescaped(self, name: str) -> str:
        return name.replace("&quot;", '"').replace("&amp;", "&") if self._style.entities else name
