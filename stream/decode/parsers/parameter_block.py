"""A block of tool calls whose arguments are tagged one by one, as in XML, split as it comes.

    <tool_call><function=NAME><parameter=KEY>VALUE</parameter>...</function></tool_call>

A `ParameterStyle` says what the tags are. The arguments go out as the text of a JSON object: each key when its tag has
closed; a value that can only be a string as it comes; another one when it has closed, as JSON of the type that the
tool's schema declares (`coercion.py`), with the tags in it (`nested_values.py`) if the style nests. Held back is only
what may still be a tag that counts there, with the line end before it where the style does without one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, ClassVar, Literal

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.base import (
    ANSWER,
    TOOL_CALL,
    Passage,
    Piece,
    find_mark,
    first_match,
    mark_at,
    markup,
    plain,
)
from tokenweir.stream.decode.parsers.coercion import STRING, escaped, escaped_runs, parameter_types
from tokenweir.stream.decode.parsers.json_block import CUT_SHORT, MAX_HEADER
from tokenweir.stream.decode.parsers.literals import json_of_argument
from tokenweir.stream.decode.parsers.nested_values import nested_json
from tokenweir.stream.decode.parsers.schemas import ToolSchemas, member
from tokenweir.stream.decode.parsers.stepped_block import SteppedBlock
from tokenweir.stream.decode.parsers.value_ends import value_end
from tokenweir.templates.tool_grammars import ParameterStyle, ToolStyle

_OTHER_THAN_SPACE = re.compile(r"[^ \t\n\r]").search
_NAME = re.compile(r"[^\s<>{}\[\]\"'=,()]+")
_ESCAPED = '"\\' + "".join(map(chr, range(0x20)))  # what a JSON string has to escape


class ParameterBlock(SteppedBlock):
    """Splits the text of blocks. A `Block`.

    The states: "opened", where a call must begin; "name", and "tail" up to where its tag ends; "parameters", where a key
    or the end of the call must come; "key"; "unvalued", between a key and its value, and "type", a tag there; "value begins",
    at what may stand before the value's own text; "text" and "value", a value that goes out as it comes or when it has
    closed; "object", all arguments as JSON in place of tags; "between", after a call; "broken"; and "done".
    """

    __slots__ = ("_closer", "_depth", "_empty", "_json", "_key", "_kind", "_name", "_opener", "_streams")

    SAVED: ClassVar[dict[str, Any]] = {
        **SteppedBlock.HELD,
        "_state": Literal[
            "opened",
            "name",
            "tail",
            "parameters",
            "key",
            "unvalued",
            "type",
            "value begins",
            "text",
            "value",
            "object",
            "between",
            "broken",
            "done",
        ],
        "_name": str,
        "_key": str,
        "_closer": str,
        "_opener": str,
        "_depth": int,
        "_kind": Literal["schema", "string", "json"],
        "_streams": bool,
        "_empty": bool,
        "_json": JsonValue,
    }

    _style: ParameterStyle

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Read blocks of a style.

        Raises:
            TypeError: The style has no tags.

        """
        if not isinstance(style, ParameterStyle):
            raise TypeError(f"tool style {style.name!r} is no ParameterStyle")
        super().__init__(style, schemas)

    def begin(self, opener: str, call: int) -> None:
        """Begin a block; its opening text may be that of a call itself."""
        super().begin(opener, call)
        if opener == self._style.call_opens or not self._style.call_opens:
            self._state = "name"
        self._name = ""  # of the function that is called
        self._key = ""  # of the parameter that is read
        self._closer = ""  # what ends the value
        self._opener = ""  # what begins another element of the same name in it, if there can be one
        self._depth = 0  # of such elements
        self._kind = "schema"  # what says of what type its value is
        self._streams = False  # the value goes out as it comes
        self._empty = True  # the call has no argument so far
        self._json = JsonValue()  # all arguments, where they are an object rather than tags

    @property
    def passage(self) -> Passage | None:
        """The inside of a value: of a string, what is the same in JSON. After a call, white space."""
        if self._state == "between":
            return self._end_passage()
        if self._state == "object":
            return Passage("", self._json)
        if self._ahead:
            return None
        if self._state == "text" and not self._undecided.length:
            return _text_passage(self._closer[0])
        return _value_passage(self._closer[0]) if self._state == "value" else None

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows that could end the call."""
        held = self.held
        if not held:
            return []
        if self._state == "text":
            return self._string(held)
        if self._state in ("between", "parameters") and not held.strip():
            return [markup(held)]
        return [Piece(held, ANSWER, held, malformed=self._reason if self._state == "broken" else CUT_SHORT)]

    # -- one step in each state: it takes text from `place` on, adds to `out`, and returns the place after ---------------

    def _opened(self, text: str, place: int, out: list[Piece]) -> int:
        if (end := first_match(_OTHER_THAN_SPACE, text, place)) > place:
            return self._hold_back(text, place, end)
        mark, partial = mark_at(text, place, filter(None, (self._style.call_opens, self._style.closes)))
        if partial:
            return self._wait(text, place)
        if not mark:
            return self._release(f"{text[place]!r} stands where a call should begin", place, out)
        end = self._hold_back(text, place, place + len(mark))
        if mark == self._style.closes:
            self._close(out)
        else:
            self._state, self._name = "name", ""
        return end

    def _in_name(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        end, mark = find_mark(text, place, (*style.name_ends, *style.name_stops))
        if end - place > (room := MAX_HEADER - len(self._name)):
            end = self._hold_back(text, place, place + room)
            return self._release(f"a function has a name of more than {MAX_HEADER} characters", end, out)
        self._name += text[place:end]
        end = self._hold_back(text, place, end)
        if mark:
            name = self._unescaped(self._name.strip())
            if not (name if self._style.entities else _NAME.fullmatch(name)):
                return self._release(f"{name!r:.80} is no name of a function", end, out)
            self._name = name
            if mark in style.name_ends:
                end = self._hold_back(text, end, end + len(mark))
            if style.name_tail:
                self._state = "tail"
            else:
                self._announce(out)
            if mark.endswith("/>"):
                self._complete("{}", out)
            return end
        return self._wait(text, end)

    def _in_tail(self, text: str, place: int, out: list[Piece]) -> int:
        end, mark = find_mark(text, place, (self._style.name_tail,))
        if end - place > (room := 2 * MAX_HEADER - self._undecided.length):
            end = self._hold_back(text, place, place + room)
            return self._release(f"the tag of {self._name!r:.80} does not end", end, out)
        end = self._hold_back(text, place, end + len(mark))
        if not mark:
            return self._wait(text, end)
        self._announce(out)
        return end

    def _announce(self, out: list[Piece]) -> None:
        """Give the name of a call."""
        self.call += 1
        self._empty = True
        out.append(Piece(self._undecided.take(), TOOL_CALL, "", self._name, self.call))
        self._state = "parameters"

    def _in_parameters(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if (end := first_match(_OTHER_THAN_SPACE, text, place)) > place:
            return self._hold_back(text, place, end)
        mark, partial = mark_at(text, place, filter(None, (style.call_closes, style.closes, style.key_opens)))
        if partial:
            return self._wait(text, place)
        if self._empty and text[place] == "{":
            out.append(Piece(self._undecided.take(), TOOL_CALL, "", call=self.call))
            self._state, self._json = "object", JsonValue()
            return place
        if not mark:
            return self._break(f"{text[place]!r} stands where a parameter should", place, out)
        end = self._hold_back(text, place, place + len(mark))
        if mark == style.key_opens:
            self._state, self._key = "key", ""
            return end
        self._complete("{}" if self._empty else "}", out)
        if mark == style.closes:
            self._state = "done"
        return end

    def _complete(self, text: str, out: list[Piece]) -> None:
        """Give the end of the arguments."""
        out.append(Piece(self._undecided.take(), TOOL_CALL, text, call=self.call))
        out.append(Piece("", TOOL_CALL, "", call=self.call, complete=True))
        self._state = "between"

    def _in_object(self, text: str, place: int, out: list[Piece]) -> int:
        end = self._json.feed(text, place)
        if end > place:
            out.append(Piece(text[place:end], TOOL_CALL, text[place:end], call=self.call))
        if self._json.error is not None:
            return self._break(self._json.error, end, out)
        if self._json.done:
            self._complete("", out)
        return end

    def _in_key(self, text: str, place: int, out: list[Piece]) -> int:
        kinds = dict(self._style.key_closes)
        end, mark = find_mark(text, place, tuple(kinds))
        if end - place > (room := MAX_HEADER - len(self._key)):
            end = self._hold_back(text, place, place + room)
            return self._break(f"a parameter has a name of more than {MAX_HEADER} characters", end, out)
        self._key += text[place:end]
        end = self._hold_back(text, place, end)
        if mark:
            self._kind = kinds[mark]
            self._key = self._unescaped(self._key)
            end = self._hold_back(text, end, end + len(mark))
            if self._style.value_opens:
                self._state = "unvalued"
            else:
                self._begin_value(out)
            return end
        return self._wait(text, end)

    def _unvalued(self, text: str, place: int, out: list[Piece]) -> int:
        if (end := first_match(_OTHER_THAN_SPACE, text, place)) > place:
            return self._hold_back(text, place, end)
        mark, partial = mark_at(text, place, filter(None, (self._style.value_opens, *self._style.type_tags[:1])))
        if partial:
            return self._wait(text, place)
        if mark in self._style.type_tags:
            self._state = "type"
            return self._hold_back(text, place, place + len(mark))
        if not mark:
            return self._break(f"{text[place]!r} stands where the value of {self._key!r:.80} should", place, out)
        end = self._hold_back(text, place, place + len(mark))
        self._begin_value(out)
        return end

    def _in_type(self, text: str, place: int, out: list[Piece]) -> int:
        closer = self._style.type_tags[1]
        end, mark = find_mark(text, place, (closer,))
        if end - place > MAX_HEADER:
            return self._break(f"a type has a name of more than {MAX_HEADER} characters", place, out)
        if not mark:
            return self._wait(text, place)
        self._kind = "string" if text[place:end].strip() in ("string", "str") else "json"
        self._state = "unvalued"
        return self._hold_back(text, place, end + len(mark))

    def _begin_value(self, out: list[Piece]) -> None:
        """Give the key."""
        before = "{" if self._empty else ", "
        self._empty = False
        types = self._types()
        # Where the tag and the schema contradict each other, the schema holds.
        as_it_comes = (
            STRING <= (types or STRING) if self._kind == "string" else self._kind == "schema" and types == STRING
        )
        key = f"{before}{_key(self._key.strip())}: " + '"' * as_it_comes
        out.append(Piece(self._undecided.take(), TOOL_CALL, key, call=self.call))
        style = self._style
        self._streams, self._depth = as_it_comes, 0
        self._closer = style.value_closes.replace("{}", self._key)
        self._opener = f"{style.nests}<{self._key}>" if style.nests and "string" not in types else ""
        self._state = "value begins" if style.trims or style.verbatim else "text" if as_it_comes else "value"

    def _value_begins(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        mark, partial = mark_at(text, place, (*style.verbatim[:1], *(("\n", "\r\n") if style.trims else ())))
        if partial:
            return self._wait(text, place)
        if mark:  # it goes with the key
            out.append(Piece(mark, TOOL_CALL, "", call=self.call))
        if mark in style.verbatim:
            self._closer = style.verbatim[1] + self._closer
        self._state = "text" if self._streams else "value"
        return place + len(mark)

    def _in_text(self, text: str, place: int, out: list[Piece]) -> int:
        end, closer = value_end(self._style, self._closer, text, place)
        out += self._string(text[place:end])
        if not closer:
            return self._wait(text, end)
        out.append(Piece(closer, TOOL_CALL, '"', call=self.call))
        self._state = "parameters"
        return end + len(closer)

    def _in_value(self, text: str, place: int, out: list[Piece]) -> int:
        if self._opener:
            end, closer = find_mark(text, place, (self._opener, self._closer))
        else:
            end, closer = value_end(self._style, self._closer, text, place)
        self._undecided.add(text[place:end])
        if not closer:
            return self._wait(text, end)
        if closer == self._opener or self._depth:
            self._depth += 1 if closer == self._opener else -1
            return self._hold_back(text, end, end + len(closer))
        source = self._undecided.take()
        if self._opener:
            schema = self._schemas.get(self._name, {})
            value = nested_json(source, member(schema, schema, self._key.strip()), schema, self._style.nests)
        else:
            value = json_of_argument(source, self._types(), tagged=self._kind == "json")
        out.append(Piece(source + closer, TOOL_CALL, value, call=self.call))
        self._state = "parameters"
        return end + len(closer)

    def _between(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if (end := first_match(_OTHER_THAN_SPACE, text, place)) > place:
            return self._hold_back(text, place, end)
        ends = (style.closes, style.call_closes)  # the latter comes behind an object
        mark, partial = mark_at(text, place, filter(None, (*ends, style.call_opens, *style.opens)))
        if partial:
            return self._wait(text, place)
        if mark and mark in ends:
            end = self._hold_back(text, place, place + len(mark))
            out.append(markup(self._undecided.take()))
            self._state = "done" if mark == style.closes else "between"
            return end
        if mark == style.call_opens != "":
            self._state, self._name = "name", ""
            return self._hold_back(text, place, place + len(mark))
        if self._undecided.length:  # the block has ended without a word
            space = self._undecided.take()
            out.append(markup(space) if mark else plain(space, ANSWER))
        self._state = "done"
        return place

    def _broken(self, text: str, place: int, out: list[Piece]) -> int:
        ends = tuple(filter(None, (self._style.closes or self._style.call_closes,)))
        end, mark = find_mark(text, place, ends)
        end += len(mark)
        if end > place:
            out.append(Piece(text[place:end], ANSWER, text[place:end], malformed=self._reason))
        if mark:
            self._state = "done"
            return end
        return self._wait(text, end)

    # -- what the steps have in common ---------------------------------------------------------------------------------

    def _string(self, text: str) -> list[Piece]:
        """Write a part of a string; what stays as it is, is a piece of its own, since it may have passed before."""
        return [Piece(run, TOOL_CALL, json, call=self.call) for run, json in escaped_runs(text)]

    def _unescaped(self, name: str) -> str:
        return name.replace("&quot;", '"').replace("&amp;", "&") if self._style.entities else name

    def _types(self) -> frozenset[str]:
        return parameter_types(self._schemas.get(self._name, {}), self._key.strip())

    def _release(self, reason: str, place: int, out: list[Piece]) -> int:
        """Give as answer what was held: it is no call."""
        held = self._undecided.take()
        out.append(Piece(held, ANSWER, held, malformed=reason))
        self._state, self._reason = "broken", reason
        return place

    def _break(self, reason: str, place: int, out: list[Piece]) -> int:
        """End a call whose name has gone out, and say why it is none."""
        out.append(Piece("", TOOL_CALL, "", call=self.call, malformed=reason))
        if self._undecided.length:
            return self._release(reason, place, out)
        self._state, self._reason = "broken", reason
        return place


ParameterBlock.STEPS = {
    "opened": ParameterBlock._opened,
    "name": ParameterBlock._in_name,
    "tail": ParameterBlock._in_tail,
    "parameters": ParameterBlock._in_parameters,
    "key": ParameterBlock._in_key,
    "unvalued": ParameterBlock._unvalued,
    "type": ParameterBlock._in_type,
    "value begins": ParameterBlock._value_begins,
    "text": ParameterBlock._in_text,
    "value": ParameterBlock._in_value,
    "object": ParameterBlock._in_object,
    "between": ParameterBlock._between,
    "broken": ParameterBlock._broken,
}


def _key(text: str) -> str:
    return f'"{escaped(text)}"'


@cache
def _text_passage(first: str) -> Passage:
    return Passage("".join(sorted({first, *_ESCAPED})))


@cache
def _value_passage(first: str) -> Passage:
    return Passage("".join(sorted({first, "\r", "\n"})), held=True)
