"""Block of tool calls with one tagged element per argument, as in XML.

    <tool_call><function=NAME><parameter=KEY>VALUE</parameter>...</function></tool_call>

A `ParameterStyle` defines the tags; `tagged_calls.py` reads those around the arguments. The arguments are emitted as
the text of a JSON object. A key is emitted when its tag has closed. A value that can only be a string is emitted
incrementally. So is a long value that can only be an array or an object, and is one in JSON. Any other value is emitted
when it has closed, as JSON of the type that the tool's schema declares (`coercion.py`), nested tags included
(`nested_values.py`) if the style nests. Only a possible prefix of an active tag is held back, with the line end before
it where the style strips that.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.blocks import tagged_calls
from tokenweir.stream.decode.parsers.blocks.coercion import STRING, Types, escaped, escaped_runs
from tokenweir.stream.decode.parsers.blocks.literals import json_of_argument
from tokenweir.stream.decode.parsers.blocks.nested_values import nested_json
from tokenweir.stream.decode.parsers.blocks.stepped_block import RESTS, State
from tokenweir.stream.decode.parsers.blocks.tagged_calls import TaggedCalls
from tokenweir.stream.decode.parsers.blocks.value_ends import value_end
from tokenweir.stream.decode.parsers.pieces import CUT_SHORT, TOOL_CALL, Piece, markup
from tokenweir.stream.decode.parsers.saved import Count, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, find_mark, mark_at
from tokenweir.stream.decode.parsers.value_schemas import ValueSchema
from tokenweir.templates.styles.grammars import ToolStyle

_CONTAINERS = frozenset({"array", "object"})
_SCALARS = frozenset({"integer", "number", "boolean", "null"})
_ESCAPED = '"\\' + "".join(map(chr, range(0x20)))  # characters that a JSON string must escape


_VALUED = ("value begins", "text", "value")
STATES = tagged_calls.STATES | {
    "parameters": State(
        "before a key or the end of the call", ("object", "key", "between", "rest", "done"), space="held"
    ),
    "object": State("in all arguments, as JSON in place of tags", ("between", "rest"), emits=True),
    "key": State("in a key", ("unvalued", *_VALUED, "parameters", "rest")),
    "unvalued": State("between a key and its value", ("type", *_VALUED, "rest"), space="held"),
    "type": State("in a tag with the value's type", ("unvalued", "rest")),
    "value begins": State("at an optional mark before the value's text", ("text", "value"), emits=True),
    "text": State("in a string that is emitted incrementally", ("parameters",), emits=True),
    "value": State("in a value that is emitted when it has closed", ("json", "parameters")),
    "json": State("in a long array or object that is emitted incrementally", ("json ends", "rest"), emits=True),
    "json ends": State("behind such an array or object", ("parameters", "rest")),
    **RESTS,
}


class ParameterBlock(TaggedCalls, states=STATES):
    """Block of calls with a tagged element for each argument, as in XML."""

    SAVED: ClassVar[dict[str, Any]] = {
        **TaggedCalls.BASE_SAVED,
        "_state": ShortText,
        "_key": ShortText,
        "_closer": ShortText,
        "_opener": ShortText,
        "_depth": Count,
        "_kind": Literal["schema", "string", "json"],
        "_streams": bool,
        "_short": bool,
        "_json": JsonValue,
    }

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        super().__init__(style, schemas)
        self._call_ends = tuple(filter(None, (style.call_closes, style.closes)))
        self._stops = "".join(mark[0] for mark in (self._style.key_opens, *self._call_ends))

    def begin(self, opener: str, call: int) -> None:
        super().begin(opener, call)
        self._key = ""  # of the current parameter
        self._closer = ""  # the text that ends the value
        self._opener = ""  # the tag that opens a nested element of the same name, if the style nests
        self._depth = 0  # of nested elements of that name
        self._kind = "schema"  # the source of the value's type
        self._streams = False  # the value is emitted incrementally
        self._short = False  # the value is held only while it is short, because it may be a whole array or object
        self._json = JsonValue()  # all arguments, if they are an object rather than tags; or a long value

    def check(self) -> None:
        super().check()
        style, state = self._style, self._state
        tags = {"key": style.key_closes, "unvalued": style.value_opens, "type": style.type_tags}
        check_restored(bool(tags.get(state, True)), f"the style has no {state!r}")
        if state in ("value begins", "text", "value", "json", "json ends"):
            closer = style.value_closes.replace("{}", self._key)
            closers = (closer, *(verbatim + closer for verbatim in style.verbatim[1:]))
            check_restored(bool(style.key_opens) and self._closer in closers, "a value has another end than its tag")
            openers = ("", f"{style.nests}<{self._key}>") if style.nests else ("",)
            check_restored(self._opener in openers, "another element begins in a value than its own")

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed` on the fast path; None if all text must be fed.

        That is text inside a value or a JSON object of arguments, and white space after a call. In a string that is
        emitted incrementally, characters that JSON escapes must be fed.
        """
        if self._state == "between":
            return self._skippable_before_end()
        if self._state in ("object", "json"):
            return SkippableText("", self._json)
        if self._unprocessed:
            return None
        if self._state == "text" and not self._undecided.length:
            return _skippable_in_text(self._closer[0] + self._stops)
        return _skippable_in_value(self._closer[0] + self._stops) if self._state == "value" else None

    def _cut_short(self, held: str) -> list[Piece]:
        if self._state == "text":
            return self._string(held)
        if self._state == "first":  # before its parameters
            return [self._named(self._name, held)]
        if self._state == "value":
            return [Piece(held, TOOL_CALL, held, call=self.call)]
        if self._state not in ("opened", "unnamed", "name", "tail"):
            return [markup(held)]
        return super()._cut_short(held)

    def end_call(self, out: list[Piece]) -> None:
        """End a block that is one call, at markup that the caller has found: complete the call, or report that it is cut off."""
        if self._state == "first":
            self._announce(out)
        if self._state == "parameters" and not self._unprocessed:
            self._complete("{}" if self._empty else "}", out)
            return
        out += self.finish()
        if self._state not in ("between", "rest"):
            out.append(Piece("", TOOL_CALL, "", call=self.call, malformed=CUT_SHORT))

    # -- a step per state: processes text from `place`, adds pieces to `out`, returns the place of the rest ------------

    def _in_parameters(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        mark, partial = mark_at(text, place, self._after_name)
        if partial:
            return self._wait(text, place)
        if self._empty and text[place] == "{":
            out.append(Piece(self._undecided.take(), TOOL_CALL, "", call=self.call))
            self._state, self._json = "object", JsonValue()
            return place
        if not mark or (mark == style.object_opens and not self._empty):
            return self._break(f"{text[place]!r} stands where a parameter should", place, out)
        end = self._hold(text, place, place + len(mark), out)
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
        if self._json.done:
            self._complete("", out)
        return end

    def _in_key(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        kinds = dict(style.key_closes)
        end, mark = find_mark(text, place, (*kinds, style.value_closes, *self._call_ends))
        if end - place > (room := max(0, MAX_HEADER - len(self._key))):
            end = self._hold(text, place, place + room, out)
            return self._break(f"a parameter has a name of more than {MAX_HEADER} characters", end, out)
        self._key += text[place:end]
        end = self._hold(text, place, end, out)
        if mark == style.value_closes and style.joins:
            return self._joined(end, mark, out)
        if mark and mark not in kinds:
            return self._break(f"the name {self._key!r:.80} of a parameter does not end", end, out)
        if mark:
            self._kind = kinds[mark]
            self._key = self._unescaped(self._key)
            end = self._hold(text, end, end + len(mark), out)
            if style.value_opens:
                self._state = "unvalued"
            else:
                self._begin_value(out)
            return end
        return self._wait(text, end)

    def _joined(self, end: int, closer: str, out: list[Piece]) -> int:
        """Emit a parameter whose name and value stand in one element, apart by a separator. Return the index after it.

        Args:
            end: The index of the closing tag.
            closer: The closing tag.
            out: The list to which the piece is added.

        """
        name, joins, value = self._key.partition(self._style.joins)
        if not joins:
            return self._break(f"the parameter {name!r:.80} has no value", end, out)
        self._key, self._kind = name, "schema"
        self._begin_value(out)
        text = escaped(value) + '"' if self._streams else json_of_argument(value, self._types())
        out.append(Piece(closer, TOOL_CALL, text, call=self.call))
        self._state = "parameters"
        return end + len(closer)

    def _in_unvalued(self, text: str, place: int, out: list[Piece]) -> int:
        mark, partial = mark_at(text, place, filter(None, (self._style.value_opens, *self._style.type_tags[:1])))
        if partial:
            return self._wait(text, place)
        if mark in self._style.type_tags:
            self._state = "type"
            return self._hold(text, place, place + len(mark), out)
        if not mark:
            return self._break(f"{text[place]!r} stands where the value of {self._key!r:.80} should", place, out)
        end = self._hold(text, place, place + len(mark), out)
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
        return self._hold(text, place, end + len(mark), out)

    def _begin_value(self, out: list[Piece]) -> None:
        """Emit the key as JSON, and decide whether its value is emitted incrementally or when it has closed."""
        before = "{" if self._empty else ", "
        self._empty = False
        types = self._types()
        # The schema takes precedence over the tag.
        as_it_comes = (
            STRING <= (types or STRING) if self._kind == "string" else self._kind == "schema" and types == STRING
        )
        key = f"{before}{_key(self._key.strip())}: " + '"' * as_it_comes
        out.append(Piece(self._undecided.take(), TOOL_CALL, key, call=self.call))
        style = self._style
        self._streams, self._depth = as_it_comes, 0
        self._short = bool(types) and types <= _CONTAINERS and not style.nests
        self._closer = style.value_closes.replace("{}", self._key)
        self._opener = f"{style.nests}<{self._key}>" if style.nests and "string" not in types else ""
        self._state = "value begins" if style.trims or style.verbatim else "text" if as_it_comes else "value"

    def _in_value_begins(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        mark, partial = mark_at(text, place, (*style.verbatim[:1], *(("\n", "\r\n") if style.trims else ())))
        if partial:
            return self._wait(text, place)
        if mark:  # the mark belongs to the key
            out.append(Piece(mark, TOOL_CALL, "", call=self.call))
        if mark in style.verbatim:
            self._closer = style.verbatim[1] + self._closer
        self._state = "text" if self._streams else "value"
        return place + len(mark)

    def _in_text(self, text: str, place: int, out: list[Piece]) -> int:
        end, closer = value_end(self._style, self._closer, text, place)
        out += self._string(text[place:end])
        if closer is None:
            return self._wait(text, end)
        out.append(Piece(closer, TOOL_CALL, '"', call=self.call))
        self._state = "parameters"
        return end + len(closer)

    def _in_value(self, text: str, place: int, out: list[Piece]) -> int:
        closer: str | None
        if self._opener:
            end, closer = find_mark(text, place, (self._opener, self._closer))
            closer = closer or None
        else:
            end, closer = value_end(self._style, self._closer, text, place)
            if _SCALARS >= self._types() > frozenset():  # no tag can be in it
                at, mark = find_mark(text, place, self._call_ends)
                end, closer = (at, "" if mark else None) if at < end else (end, closer)
            if self._short and end - place >= (room := max(0, MAX_HEADER - self._undecided.length)):
                return self._begin_json(text, place, place + room, out)
        self._undecided.add(text[place:end])
        if closer is None:
            return self._wait(text, end)
        if self._opener and (closer == self._opener or self._depth):
            self._depth += 1 if closer == self._opener else -1
            return self._hold(text, end, end + len(closer), out)
        source = self._undecided.take()
        if self._opener:
            value = nested_json(source, self._argument(), self._style.nests)
        else:
            value = json_of_argument(source, self._types(), tagged=self._kind == "json")
        out.append(Piece(source + closer, TOOL_CALL, value, call=self.call))
        self._state = "parameters"
        return end + len(closer)

    def _begin_json(self, text: str, place: int, end: int, out: list[Piece]) -> int:
        """Add `text[place:end]` to a long value that is held, and return `end`.

        If the value so far is the beginning of JSON of an allowed type, emit it; what follows is emitted incrementally.
        """
        self._short = False
        self._undecided.add(text[place:end])
        value, held = JsonValue(), str(self._undecided).lstrip()
        kind = {"[": "array", "{": "object"}.get(held[:1])
        if kind in self._types() and value.feed(held) == len(held) and not value.done and value.error is None:
            source = self._undecided.take()
            out.append(Piece(source, TOOL_CALL, source, call=self.call))
            self._state, self._json = "json", value
        return end

    def _in_json(self, text: str, place: int, out: list[Piece]) -> int:
        end = self._pass_json(self._json, text, place, out)
        if self._json.done:
            self._state = "json ends"
        return end

    def _in_json_ends(self, text: str, place: int, out: list[Piece]) -> int:
        end, closer = value_end(self._style, self._closer, text, place)
        if text[place:end].strip():
            return self._break(f"text stands behind the value of {self._key!r:.80}", place, out)
        self._hold(text, place, end + len(closer or ""), out)
        if closer is None:
            return self._wait(text, end)
        out.append(Piece(self._undecided.take(), TOOL_CALL, "", call=self.call))
        self._state = "parameters"
        return end + len(closer)

    # -- shared parts of the steps -------------------------------------------------------------------------------------

    def _string(self, text: str) -> list[Piece]:
        """Return pieces for a part of a string value as JSON; runs of characters with and without escapes are separate."""
        return [Piece(run, TOOL_CALL, json, call=self.call) for run, json in escaped_runs(text)]

    def _argument(self) -> ValueSchema:
        return self._schemas.arguments(self._name).member(self._key.strip())

    def _types(self) -> Types:
        return self._argument().types


def _key(text: str) -> str:
    return f'"{escaped(text)}"'


@cache
def _skippable_in_text(stops: str) -> SkippableText:
    return SkippableText("".join(sorted({*stops, *_ESCAPED})))


@cache
def _skippable_in_value(stops: str) -> SkippableText:
    return SkippableText("".join(sorted({*stops, "\r", "\n"})), held=True)
