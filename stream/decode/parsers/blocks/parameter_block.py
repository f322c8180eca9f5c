"""A block of tool calls whose arguments are tagged one by one, as in XML, split as it comes.

    <tool_call><function=NAME><parameter=KEY>VALUE</parameter>...</function></tool_call>

A `ParameterStyle` says what the tags are; `tagged_calls.py` reads those round the arguments. These go out as the text of
a JSON object: each key when its tag has closed; a value that can only be a string as it comes; another one when it has
closed, as JSON of the type that the tool's schema declares (`coercion.py`), with the tags in it (`nested_values.py`) if
the style nests. Held back is only what may still be a tag that counts there, with the line end before it where the style
does without one.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.base import (
    ANSWER,
    CUT_SHORT,
    MAX_HEADER,
    TOOL_CALL,
    Count,
    Passage,
    Piece,
    ShortText,
    check_restored,
    find_mark,
    first_match,
    mark_at,
    markup,
)
from tokenweir.stream.decode.parsers.blocks.coercion import STRING, escaped, escaped_runs, parameter_types
from tokenweir.stream.decode.parsers.blocks.literals import json_of_argument
from tokenweir.stream.decode.parsers.blocks.nested_values import nested_json
from tokenweir.stream.decode.parsers.blocks.stepped_block import OTHER_THAN_SPACE
from tokenweir.stream.decode.parsers.blocks.tagged_calls import TaggedCalls
from tokenweir.stream.decode.parsers.blocks.value_ends import value_end
from tokenweir.stream.decode.parsers.schemas import member

_ESCAPED = '"\\' + "".join(map(chr, range(0x20)))  # what a JSON string has to escape


class ParameterBlock(TaggedCalls):
    """Splits the text of blocks. A `Block`.

    The states, beside those of `TaggedCalls`: "parameters", where a key or the end of the call must come; "key"; "unvalued",
    between a key and its value, and "type", a tag there; "value begins", at what may stand before the value's own text;
    "text" and "value", a value that goes out as it comes or when it has closed; and "object", all arguments as JSON in
    place of tags.
    """

    __slots__ = ("_closer", "_depth", "_json", "_key", "_kind", "_opener", "_streams")

    SAVED: ClassVar[dict[str, Any]] = {
        **TaggedCalls.HELD,
        "_state": Literal[
            "opened",
            "name",
            "tail",
            "first",
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
        "_key": ShortText,
        "_closer": ShortText,
        "_opener": ShortText,
        "_depth": Count,
        "_kind": Literal["schema", "string", "json"],
        "_streams": bool,
        "_json": JsonValue,
    }

    GIVEN = frozenset({"value begins", "text", "object", "broken"})

    def begin(self, opener: str, call: int) -> None:
        """Begin a block."""
        super().begin(opener, call)
        self._key = ""  # of the parameter that is read
        self._closer = ""  # what ends the value
        self._opener = ""  # what begins another element of the same name in it, if there can be one
        self._depth = 0  # of such elements
        self._kind = "schema"  # what says of what type its value is
        self._streams = False  # the value goes out as it comes
        self._json = JsonValue()  # all arguments, where they are an object rather than tags

    def check(self) -> None:
        """Check what was restored."""
        super().check()
        style, state = self._style, self._state
        tags = {"key": style.key_closes, "unvalued": style.value_opens, "type": style.type_tags}
        check_restored(bool(tags.get(state, True)), f"the style has no {state!r}")
        if state in ("value begins", "text", "value"):
            closer = style.value_closes.replace("{}", self._key)
            closers = (closer, *(verbatim + closer for verbatim in style.verbatim[1:]))
            check_restored(bool(style.key_opens) and self._closer in closers, "a value has another end than its tag")
            openers = ("", f"{style.nests}<{self._key}>") if style.nests else ("",)
            check_restored(self._opener in openers, "another element begins in a value than its own")

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
        if self._state == "first":  # cut short before its parameters
            return [self._named(self._name, held)]
        if self._state in ("between", "parameters") and not held.strip():
            return [markup(held)]
        return [Piece(held, ANSWER, held, malformed=self._reason if self._state == "broken" else CUT_SHORT)]

    # -- one step in each state: it takes text from `place` on, adds to `out`, and returns the place after ---------------

    def _in_parameters(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if (end := first_match(OTHER_THAN_SPACE, text, place)) > place:
            return self._hold_back(text, place, end)
        mark, partial = mark_at(text, place, self._after_name)
        if partial:
            return self._wait(text, place)
        if self._empty and text[place] == "{":
            out.append(Piece(self._undecided.take(), TOOL_CALL, "", call=self.call))
            self._state, self._json = "object", JsonValue()
            return place
        if not mark or (mark == style.object_opens and not self._empty):
            return self._break(f"{text[place]!r} stands where a parameter should", place, out)
        end = self._hold_back(text, place, place + len(mark))
        if mark == style.object_opens:
            return end
        if mark == style.key_opens:
            self._state, self._key = "key", ""
            return end
        self._complete("{}" if self._empty else "}", out)
        if mark == style.closes:
            self._state = "done"
        return end

    def _in_object(self, text: str, place: int, out: list[Piece]) -> int:
        end = self._pass_json(self._json, text, place, out)
        if self._json.error is not None:
            return self._break(self._json.error, end, out)
        if self._json.done:
            self._complete("", out)
        return end

    def _in_key(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        kinds = dict(style.key_closes)
        end, mark = find_mark(text, place, (*kinds, *([style.value_closes] if style.joins else ())))
        if end - place > (room := max(0, MAX_HEADER - len(self._key))):
            end = self._hold_back(text, place, place + room)
            return self._break(f"a parameter has a name of more than {MAX_HEADER} characters", end, out)
        self._key += text[place:end]
        end = self._hold_back(text, place, end)
        if mark and mark not in kinds:
            return self._joined(end, mark, out)
        if mark:
            self._kind = kinds[mark]
            self._key = self._unescaped(self._key)
            end = self._hold_back(text, end, end + len(mark))
            if style.value_opens:
                self._state = "unvalued"
            else:
                self._begin_value(out)
            return end
        return self._wait(text, end)

    def _joined(self, end: int, closer: str, out: list[Piece]) -> int:
        """Give a parameter without the tags between its name and its value; the text that closes it is at `end`."""
        name, joins, value = self._key.partition(self._style.joins)
        if not joins:
            return self._break(f"the parameter {name!r:.80} has no value", end, out)
        self._key, self._kind = name, "schema"
        self._begin_value(out)
        text = escaped(value) + '"' if self._streams else json_of_argument(value, self._types())
        out.append(Piece(closer, TOOL_CALL, text, call=self.call))
        self._state = "parameters"
        return end + len(closer)

    def _unvalued(self, text: str, place: int, out: list[Piece]) -> int:
        if (end := first_match(OTHER_THAN_SPACE, text, place)) > place:
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

    # -- what the steps have in common ---------------------------------------------------------------------------------

    def _string(self, text: str) -> list[Piece]:
        """Write a part of a string; what stays as it is, is a piece of its own, since it may have passed before."""
        return [Piece(run, TOOL_CALL, json, call=self.call) for run, json in escaped_runs(text)]

    def _types(self) -> frozenset[str]:
        return parameter_types(self._schemas.get(self._name, {}), self._key.strip())


ParameterBlock.STEPS = {
    **TaggedCalls.STEPS,
    "parameters": ParameterBlock._in_parameters,
    "key": ParameterBlock._in_key,
    "unvalued": ParameterBlock._unvalued,
    "type": ParameterBlock._in_type,
    "value begins": ParameterBlock._value_begins,
    "text": ParameterBlock._in_text,
    "value": ParameterBlock._in_value,
    "object": ParameterBlock._in_object,
}


def _key(text: str) -> str:
    return f'"{escaped(text)}"'


@cache
def _text_passage(first: str) -> Passage:
    return Passage("".join(sorted({first, *_ESCAPED})))


@cache
def _value_passage(first: str) -> Passage:
    return Passage("".join(sorted({first, "\r", "\n"})), held=True)
