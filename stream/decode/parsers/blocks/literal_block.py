"""Block of tool calls in the syntax of a programming language.

    [name(key="value", other=[1, True])]        Python's: Llama 3.2 and 4, Olmo 3, LFM2
    call:name{key:<|"|>value<|"|>,other:[1]}    Gemma's

A `LiteralStyle` selects the syntax. The arguments are emitted incrementally as the text of a JSON object: literals of
the language become JSON, strings included. The name is emitted once the first argument has shown that this is a call.
A block without opening text may be an ordinary answer, so the request must also have such a function, if it has tools.
Models forget to escape quotes, so a quote ends a Python string only if a string may be followed by the text behind it.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tokenweir.stream.decode.parsers.blocks.coercion import escaped_runs, quoted
from tokenweir.stream.decode.parsers.blocks.literals import (
    SET,
    begins_set,
    find_escape,
    json_of_escape,
    json_of_word,
    string_ends,
)
from tokenweir.stream.decode.parsers.blocks.stepped_block import OTHER_THAN_SPACE, RESTS, State, SteppedBlock
from tokenweir.stream.decode.parsers.pieces import ANSWER, TOOL_CALL, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, find_mark, first_match, mark_at
from tokenweir.templates.styles.grammars import LiteralStyle, ToolStyle

MAX_DEPTH = 64
"""Maximum nesting of brackets; a deeper call is malformed."""

_ENDS_NAME = re.compile(r"[^\w.\-]").search
_BEGINS_NAME = re.compile(r"[^\W\d]").match
_NO_NAME = "0123456789.-"  # characters that cannot begin a name
_KEY = re.compile(r"[^\s\"'<>()\[\]{},:=]+")
_ENDS_WORD = re.compile(r"[\s,()\[\]{}]").search
_BRACKETS = {"{": "}", "[": "]", "(": ")", SET: "}"}
_LISTS = "[(" + SET  # brackets of lists, which become arrays
_STACK = re.compile(rf"(?:a[{{\[({SET}]*)?")


_ENDS = ("rest", "done")
STATES = {
    "opened": State("before a call or a list of calls", ("name", "between", "broken", "done"), space="held"),
    "name": State("in the name", ("named", "broken", "done")),
    "named": State("between the name and its bracket", ("first", "broken", "done")),
    "first": State(
        "before the first argument or the end of the arguments; the name is held",
        ("key", "broken", "done"),
        space="held",
    ),
    "key": State("before or in a key", ("text", "assigns", "after", "between", *_ENDS), emits=True, space="dropped"),
    "assigns": State("before the sign that assigns a value", ("value", *_ENDS), emits=True, space="dropped"),
    "value": State("before a value", ("text", "word", "key", "after", *_ENDS), emits=True, space="dropped"),
    "text": State("in a string", ("assigns", "after", *_ENDS), emits=True),
    "word": State("in another literal", ("after", *_ENDS)),
    "after": State("behind a value", ("comma", "between", *_ENDS), emits=True, space="dropped"),
    "comma": State("behind a comma", ("key", "value", "after"), space="held"),
    "between": State("behind a call", ("opened", "broken", "done"), space="held"),
    **RESTS,
}


class LiteralBlock(SteppedBlock, states=STATES):
    """Block of calls in the syntax of a programming language."""

    SAVED: ClassVar[dict[str, Any]] = {
        **SteppedBlock.BASE_SAVED,
        "_state": ShortText,
        "_bare": bool,
        "_in_list": bool,
        "_name": ShortText,
        "_stack": ShortText,
        "_quote": ShortText,
        "_is_key": bool,
        "_word": ShortText,
    }

    OTHER_QUOTES: ClassVar[str] = ""
    """Quotes of strings with escapes, besides those of the style."""

    _style: LiteralStyle

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Configure the block for a style; raise `TypeError` unless it is a `LiteralStyle`."""
        if not isinstance(style, LiteralStyle):
            raise TypeError(f"tool style {style.name!r} is no LiteralStyle")
        super().__init__(style, schemas)

    def begin(self, opener: str, call: int) -> None:
        super().begin(opener, call)
        self._bare = not opener
        self._in_list = False
        self._name = ""
        self._stack = ""  # the brackets that are open, the arguments' own as `a`
        self._quote = ""  # the text that ends the string
        self._is_key = False  # the string is a key
        self._word = ""

    def check(self) -> None:
        super().check()
        stack, state = self._stack, self._state
        check_restored(
            _STACK.fullmatch(stack) is not None and len(stack) <= MAX_DEPTH, f"{stack!r:.80} are no brackets"
        )
        within = state in ("key", "assigns", "value", "text", "word", "after", "comma", "quoted")
        check_restored(not within or bool(stack), "an argument stands outside of a call")
        quotes = (*self._style.quotes, *self.OTHER_QUOTES)
        check_restored(state not in ("text", "quoted") or self._quote in quotes, "a string has no quote")
        held = str(self._undecided) if state in ("name", "word") else ""
        check_restored(state != "word" or held == self._word, "a value is another than what is held")
        check_restored(state != "name" or held.endswith(self._name), "a name is another than what is held")
        check_restored(max(len(self._name), len(self._word)) <= MAX_HEADER, "a name or a value is too long")

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed`: white space where the block may end; None everywhere else."""
        return self._skippable_before_end() if self._state == "between" and not self._in_list else None

    def _cut_short(self, held: str) -> list[Piece]:
        if self._state == "text" and held.startswith(self._quote):  # it cannot become part of a longer text any more
            out: list[Piece] = []
            end, self._unprocessed = self._end_string(out), ""
            rest = self.feed(held[end:], out)
            return [*out, *self.finish(), *([plain(rest, ANSWER)] if rest else [])]
        if self._state == "text":
            return [Piece(run, TOOL_CALL, json, call=self.call) for run, json in escaped_runs(held)]
        if self._state in ("word", "quoted"):
            return [Piece(held, TOOL_CALL, held, call=self.call)]
        if self._state in ("name", "named") and not self._in_list and self._called:  # perhaps a word behind the block
            return [plain(held, ANSWER)]
        if self._stack or (self._state == "between" and not held.strip()):
            return [markup(held)]
        return super()._cut_short(held)

    # -- a step per state: processes text from `place`, adds pieces to `out`, returns the place of the rest ------------

    def _in_opened(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if style.lists and text[place] == "[" and not self._in_list:
            self._in_list = True
            return self._hold(text, place, place + 1, out)
        if self._in_list and text[place] == "]" and not self._bare:
            return self._end_list(text, place, out)
        marks = (*style.prefixes, style.closes, *style.leads, *style.opens)
        mark, partial = mark_at(text, place, filter(None, marks))
        if partial:
            return self._wait(text, place)
        if mark in style.opens and not self._is_doubled(mark):
            return self._release(f"{mark!r} stands where a call should begin", place, out)
        if mark in (*style.leads, *style.opens):
            return self._hold(text, place, place + len(mark), out)
        if mark and mark == style.closes:
            end = self._hold(text, place, place + len(mark), out)
            self._close(out)
            return end
        if style.prefixes and not mark:
            return self._release(f"{text[place]!r} stands where a call should begin", place, out)
        self._state, self._name = "name", ""
        return self._hold(text, place, place + len(mark), out)

    def _in_name(self, text: str, place: int, out: list[Piece]) -> int:
        if not (self._name or self._bare) and (end := first_match(OTHER_THAN_SPACE, text, place)) > place:
            return self._hold(text, place, end, out)
        end = first_match(_ENDS_NAME, text, place)
        if end - place > (room := max(0, MAX_HEADER - len(self._name))):
            end = self._hold(text, place, place + room, out)
            return self._release(f"a function has a name of more than {MAX_HEADER} characters", end, out)
        self._name += text[place:end]
        self._hold(text, place, end, out)
        if end < len(text):
            self._state = "named"
        return end

    def _in_named(self, text: str, place: int, out: list[Piece]) -> int:
        if not self._bare and (end := first_match(OTHER_THAN_SPACE, text, place)) > place:
            return self._hold(text, place, end, out)
        suffix = self._style.name_suffix
        if (
            text[place] != self._style.brackets[0]
            or not self._name.removesuffix(suffix).strip(_NO_NAME)
            or not self._name.endswith(suffix)
        ):
            return self._release(f"{self._name!r:.80} is no name of a function", place, out)
        end = self._hold(text, place, place + 1, out)
        self._name = self._name.removesuffix(suffix)
        if self._bare and (refusal := self._schemas.refusal(self._name)):
            return self._release(refusal, end, out)
        self._state = "first"
        return end

    def _in_first(self, text: str, place: int, out: list[Piece]) -> int:
        """Decide whether a name and an opening bracket are a call: a named argument or the closing bracket must follow.

        Emit the name if it is a call, else all held text as answer. Return the index of the unprocessed text.
        """
        style = self._style
        rest = text[place : place + MAX_HEADER]
        if rest[0] != style.brackets[1]:
            quote, partial = mark_at(rest, 0, style.quotes)
            if partial and not quote:
                return self._wait(text, place)
            if not quote or style.escapes:  # names in Python have no quotes
                key = _KEY.match(rest)
                after = rest[key.end() :].lstrip() if key else rest
                if key and not after and len(rest) < MAX_HEADER:
                    return self._wait(text, place)
                if not key or not after.startswith(style.assigns):
                    return self._release(f"{self._name!r:.80} has an argument without a name", place, out)
        self._begin_arguments(out)
        return place

    def _begin_arguments(self, out: list[Piece]) -> None:
        """Emit the name of a call, and the `{` that opens its arguments in JSON."""
        self._stack = "a"
        out.append(self._named(self._name, self._undecided.take()))
        self._emit_argument("", "{", out)
        self._state = "key"

    def _in_key(self, text: str, place: int, out: list[Piece]) -> int:
        """Read the name of an argument or the key of an object, or the bracket that closes the arguments or the object.

        Return the index of the unprocessed text.
        """
        style = self._style
        char = text[place]
        if char == self._closer():
            return self._close_bracket(text, place, out)
        quote, partial = mark_at(text, place, style.quotes)
        if partial and not quote:
            return self._wait(text, place)
        if quote:
            self._state, self._quote, self._is_key = "text", quote, True
            return place + self._emit_argument(quote, '"', out)
        key = _KEY.match(text, place)
        if key is None:
            return self._break(f"{char!r} stands where an argument should", place, out)
        if key.end() - place > MAX_HEADER:
            return self._break(f"an argument has a name of more than {MAX_HEADER} characters", place, out)
        if key.end() == len(text):
            return self._wait(text, place)
        self._state = "assigns"
        return place + self._emit_argument(key[0], quoted(key[0]), out)

    def _in_assigns(self, text: str, place: int, out: list[Piece]) -> int:
        sign = self._style.assigns if self._stack == "a" else ":"
        if text[place] != sign:
            return self._break(f"{text[place]!r} stands where {sign!r} should", place, out)
        self._state = "value"
        return place + self._emit_argument(sign, ": ", out)

    def _in_value(self, text: str, place: int, out: list[Piece]) -> int:
        char = text[place]
        if self._stack[-1] in _LISTS and char == self._closer():  # an empty list
            return self._close_bracket(text, place, out)
        quote, partial = mark_at(text, place, self._style.quotes)
        if partial and not quote:
            return self._wait(text, place)
        if quote:
            self._state, self._quote, self._is_key = "text", quote, False
            return place + self._emit_argument(quote, '"', out)
        if char in "{[" or (char == "(" and self._style.escapes):
            if len(self._stack) == MAX_DEPTH:
                return self._break(f"the arguments are nested more than {MAX_DEPTH} levels deep", place, out)
            is_set = char == "{" and self._style.escapes and begins_set(text, place)
            if is_set is None:
                return self._wait(text, place)
            self._stack += SET if is_set else char
            is_object = char == "{" and not is_set
            self._state = "key" if is_object else "value"
            return place + self._emit_argument(char, "{" if is_object else "[", out)
        if char in ",)]}":
            return self._break(f"{char!r} stands where a value should", place, out)
        self._state, self._word = "word", ""
        return place

    def _in_text(self, text: str, place: int, out: list[Piece]) -> int:
        end = text.find(self._quote, place)
        escapes = self._style.escapes or self._quote not in self._style.quotes
        back = text.find("\\", place, len(text) if end < 0 else end) if escapes else -1
        if back >= 0:
            self._string(text[place:back], out)
            escape, longer = find_escape(text, back)
            if longer:
                return self._wait(text, back)
            if not escape:
                return self._break(f"{text[back : back + 2]!r} is no escape", back, out)
            return back + self._emit_argument(escape, json_of_escape(escape), out)
        if end < 0:
            end, _ = find_mark(text, place, (self._quote,))
            self._string(text[place:end], out)
            return self._wait(text, end)
        after = end + len(self._quote)
        ends: bool | None = True
        if self._style.escapes:
            closes = "" if self._bare else self._style.closes
            ends = string_ends(text, after, self._stack, is_key=self._is_key, in_list=self._in_list, closes=closes)
        self._string(text[place : end if ends or ends is None else after], out)
        if ends is None:
            return self._wait(text, end)
        return self._end_string(out) + end if ends else after

    def _end_string(self, out: list[Piece]) -> int:
        self._state = "assigns" if self._is_key else "after"
        return self._emit_argument(self._quote, '"', out)

    def _in_word(self, text: str, place: int, out: list[Piece]) -> int:
        end, quote, known = self._word_end(text, place)
        if end - place > (room := max(0, MAX_HEADER - len(self._word))):
            end = self._hold(text, place, place + room, out)
            return self._break(f"a value has more than {MAX_HEADER} characters", end, out)
        self._word += text[place:end]
        self._hold(text, place, end, out)
        if not known:
            return self._wait(text, end)
        if (value := self._word_value(quote)) is None:
            return self._break(f"{self._word!r:.80} is no value", end, out)
        out.append(Piece(self._undecided.take() + quote, TOOL_CALL, value, call=self.call))
        self._state = "after"
        return end + len(quote)

    def _in_after(self, text: str, place: int, out: list[Piece]) -> int:
        """Read the comma or the closing bracket behind a value. Return the index of the unprocessed text."""
        if text[place] == self._closer():
            return self._close_bracket(text, place, out)
        if text[place] != ",":
            return self._break(f"{text[place]!r} stands after a value", place, out)
        self._state = "comma"
        return self._hold(text, place, place + 1, out)

    def _in_comma(self, text: str, place: int, out: list[Piece]) -> int:
        """Read what follows a comma; emit the comma unless a bracket closes. Return the index of the unprocessed text."""
        ends = text[place] == self._closer()
        self._emit_argument(self._undecided.take(), "" if ends else ", ", out)
        self._state = "after" if ends else "value" if self._stack[-1] in _LISTS else "key"
        return place

    def _in_between(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if self._in_list and text[place] in ",]":
            if text[place] == "]":
                return self._end_list(text, place, out)
            self._state = "opened"
            return self._hold(text, place, place + 1, out)
        mark, partial = mark_at(text, place, filter(None, (style.closes, *style.tails, *style.opens)))
        if partial:
            return self._wait(text, place)
        if mark in style.tails:
            end = self._hold(text, place, place + len(mark), out)
            out.append(markup(self._undecided.take()))
            return end
        if mark and mark == style.closes:
            end = self._hold(text, place, place + len(mark), out)
            self._close(out)
            return end
        if style.closes and not self._bare and text[place] in (style.brackets[1], "]"):  # one too many
            return self._hold(text, place, place + 1, out)
        if style.closes and not mark and not self._in_list and _BEGINS_NAME(text, place):
            self._state = "opened"  # calls may follow each other outside of a list
            return place
        return self._leave_calls(text, place, mark, bool(style.closes) and not self._bare, out)

    # -- shared parts of the steps -------------------------------------------------------------------------------------

    def _emit_argument(self, source: str, text: str, out: list[Piece]) -> int:
        """Emit a part of the call's arguments, and return the length of `source`.

        Args:
            source: The generated text that the part stands for.
            text: The part as JSON text.

        """
        out.append(Piece(source, TOOL_CALL, text, call=self.call))
        return len(source)

    def _string(self, text: str, out: list[Piece]) -> None:
        for run, json in escaped_runs(text):
            self._emit_argument(run, json, out)

    def _word_end(self, text: str, place: int) -> tuple[int, str, bool]:
        """Find the end of a value without an opening quote, from index `place` on.

        Returns:
            Its index, the closing quote that stands there or an empty text, and whether the end is known already.

        """
        end = first_match(_ENDS_WORD, text, place)
        ends = end < len(text)
        if self._style.closes:
            at, mark = find_mark(text, place, (self._style.closes,))
            end, ends = (at, bool(mark)) if at < end else (end, ends)
        return end, "", ends

    def _word_value(self, quote: str) -> str | None:
        """Return the complete value as JSON; None for an invalid one. `quote` is the quote behind it, if there is one."""
        return self._word_as_json(self._word)

    def _word_as_json(self, word: str) -> str | None:
        return json_of_word(word) or (quoted(word) if self._style.words else None)

    def _closer(self) -> str:
        return self._style.brackets[1] if self._stack[-1] == "a" else _BRACKETS[self._stack[-1]]

    def _close_bracket(self, text: str, place: int, out: list[Piece]) -> int:
        self._emit_argument(text[place], "]" if self._stack[-1] in _LISTS else "}", out)
        self._stack = self._stack[:-1]
        if self._stack:
            self._state = "after"
        else:
            self._end_call(out)
        return place + 1

    def _end_list(self, text: str, place: int, out: list[Piece]) -> int:
        self._in_list = False
        end = self._hold(text, place, place + 1, out)
        if self._style.closes and not self._bare:
            out.append(markup(self._undecided.take()))
            self._state = "between"
        else:
            self._close(out)
        return end

    def _goes_on(self) -> bool:
        return bool(self._style.closes) and (self._called or self._state not in ("opened", "name", "named", "first"))

    def _break(self, reason: str, place: int, out: list[Piece]) -> int:
        """End a call whose name has been emitted; without opening text it is perhaps no call, and the rest is answer."""
        if not self._bare:
            return super()._break(reason, place, out)
        out.append(Piece("", TOOL_CALL, "", call=self.call, malformed=reason))
        return self._release(reason, place, out)
