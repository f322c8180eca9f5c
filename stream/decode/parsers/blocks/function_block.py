"""Block of tool calls that a function reads, once its closing text has come; see `register_grammar` of `parsers/tools.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from msgspec.structs import replace

from tokenweir.stream.decode.parsers.blocks.stepped_block import BROKEN, State, SteppedBlock
from tokenweir.stream.decode.parsers.pieces import TOOL_CALL, Piece
from tokenweir.stream.decode.parsers.saved import Count, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, find_mark
from tokenweir.templates.styles.grammars import ToolStyle

CallReader = Callable[[str, ToolSchemas], Iterable[tuple[str, Mapping[str, Any]]]]
"""Function that returns the name and the arguments of each call in the text of a block. It raises ValueError for a text that
is not a call; the message says why. It also gets the JSON schemas of the request's tools, by function name."""

MAX_BLOCK = 1 << 15
"""Most characters of a block between its opening and its closing text."""


STATES = {
    "opened": State("before the closing text", ("broken", "done")),
    **BROKEN,
    "broken": replace(BROKEN["broken"], then=("opened", "done")),
}


class FunctionBlock(SteppedBlock, states=STATES):
    """Block of tool calls that holds text up to the closing text, and then has a registered function read the calls."""

    SAVED: ClassVar[dict[str, Any]] = {**SteppedBlock.BASE_SAVED, "_state": ShortText, "_opened": Count}

    def __init__(self, read: CallReader, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Configure the block for a style of tool calls.

        Args:
            read: Returns the name and the arguments of each call in the text of a block.
            style: The style.
            schemas: The JSON schemas of the request's tools, by function name.

        Raises:
            ValueError: The style has no closing text.

        """
        if not style.closes:
            raise ValueError(
                f"tool style {style.name!r}: a block of the grammar {style.grammar!r} needs a closing text"
            )
        super().__init__(style, schemas)
        self._read = read

    def begin(self, opener: str, call: int) -> None:
        super().begin(opener, call)
        self._opened = len(opener)  # held, but no part of the text that is read

    def leave_opener(self) -> None:
        super().leave_opener()
        self._opened = 0

    def check(self) -> None:
        super().check()
        held = str(self._undecided)
        check_restored(len(held) - self._opened <= MAX_BLOCK, f"more than {MAX_BLOCK} characters are held")
        opened = self.broken or held[: self._opened] in ("", *self._style.opens)
        check_restored(opened and self._opened <= MAX_HEADER, "this text opens no block")

    def _goes_on(self) -> bool:
        return self._state == "opened"

    def _in_opened(self, text: str, place: int, out: list[Piece]) -> int:
        """Hold text from index `place` on back until the closing text has come, then emit the block's calls.

        A block that is too long or without a call is emitted as answer, with the reason. Return the index of the rest.
        """
        end, mark = find_mark(text, place, (self._style.closes,))
        room = MAX_BLOCK + self._opened - self._undecided.length
        if end - place > room:
            end = self._hold(text, place, place + room, out)
            return self._release(f"no {self._style.closes!r} comes within {MAX_BLOCK} characters", end, out)
        self._hold(text, place, end, out)
        if not mark:
            return self._wait(text, end)
        written = str(self._undecided)[self._opened :]
        end = self._hold(text, end, end + len(mark), out)
        self._state = "done"
        try:
            calls = [_call(found) for found in _several(self._read(written, self._schemas))]
            if refusal := next(filter(None, (self._schemas.refusal(name) for name, _ in calls)), ""):
                raise ValueError(refusal)
        except ValueError as error:
            return self._release(str(error)[:MAX_HEADER], end, out)
        if not calls:
            return self._release("no call is in the block", end, out)
        for name, arguments in calls:
            out.append(self._named(name, self._undecided.take()))
            out.append(Piece("", TOOL_CALL, arguments, call=self.call))
            out.append(Piece("", TOOL_CALL, "", call=self.call, complete=True))
        return end


def _several(found: object) -> Iterable[object]:
    """Return the result of a registered function if it is an iterable of calls; raise `TypeError` for anything else."""
    if not isinstance(found, Iterable) or isinstance(found, Mapping | str | bytes):
        raise TypeError(f"a grammar's function gave {type(found).__name__}, not several calls")
    return found


def _call(found: object) -> tuple[str, str]:
    """Return the name of one call that a registered function has found, and its arguments as JSON text.

    Raises:
        TypeError: The call is not a pair of a str and a mapping, or an argument's type is not one of JSON: a mistake of the
            function.
        ValueError: The name is empty, or the arguments have a number or a text that JSON cannot have.

    """
    given = found if isinstance(found, tuple | list) else (found,)
    name, arguments = given if len(given) == 2 else (None, None)
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        kinds = " and ".join(type(value).__name__ for value in given[:3])  # no values, which are text of the answer
        raise TypeError(
            f"a grammar's function gave {kinds} as a call, not its name as str and its arguments as a mapping"
        )
    if not name:
        raise ValueError("a call has no name")
    text = json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
    text.encode()  # a lone surrogate
    return name, text
