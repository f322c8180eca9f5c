"""Block of tool calls whose arguments are JSON. `tools.py` describes the pieces."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

import msgspec

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.blocks.call_object import CallObject
from tokenweir.stream.decode.parsers.blocks.stepped_block import FENCE, OTHER_THAN_SPACE, RESTS, State, SteppedBlock
from tokenweir.stream.decode.parsers.blocks.text_buffer import HeldText
from tokenweir.stream.decode.parsers.blocks.written_ids import function_of
from tokenweir.stream.decode.parsers.pieces import ANSWER, TOOL_CALL, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import Count, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.splitter import SkippableText
from tokenweir.stream.decode.parsers.text_search import MAX_HEADER, first_match, first_of, mark_at
from tokenweir.templates.styles.grammars import ToolStyle

_BRACKET = re.compile(r"[\[{]").search
_END = re.compile(r"[}\]]").search
_CONTINUES = ',:}]"'
"""Characters of JSON that may follow a bracket."""
_SECOND_WORD = re.compile(r"(?<![ \t\r\n])[ \t\r\n]+(?:[^ \t\r\n<`{]|\Z)").search


STATES = {
    "opened": State("before a call or a list of calls", ("header", "object", "between", "broken", "done")),
    "header": State("before the arguments, in a header with the name", ("arguments", "between", "broken", "done")),
    "arguments": State("in the arguments behind a header", ("between", "rest", "broken"), emits=True),
    "object": State("in an object with name and arguments", ("between", "text", "rest", "broken", "done")),
    "between": State("behind a call", ("opened", "broken", "done"), space="held"),
    "text": State("in JSON that is not a call", ("done",), emits=True),
    **RESTS,
}


class JsonBlock(SteppedBlock, states=STATES):
    """Block of calls whose arguments are JSON."""

    SAVED: ClassVar[dict[str, Any]] = {
        **SteppedBlock.BASE_SAVED,
        "_state": ShortText,
        "_bare": bool,
        "_head": Count,
        "_early": HeldText,
        "_begun": bool,
        "_in_list": bool,
        "_after_mark": bool,
        "_value": JsonValue,
    }

    MAX_HELD = 1 << 15

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Configure the block for a style of tool calls.

        Args:
            style: The style.
            schemas: The JSON schemas of the request's tools, by function name. If there are any, an object without
                markup is a call only if it names one of these functions.

        """
        self._early = HeldText()  # arguments that came before the name
        self._object = CallObject(style.name_keys, style.argument_keys)
        self._value = JsonValue()
        # Text that only starts like a header is rejected after a few characters: at a second word.
        self._closers = tuple(filter(None, (style.closes, *style.strays)))
        self._call_ends = tuple(filter(None, (*self._closers, style.call_closes, *style.tails)))
        marks = (*style.opens, *filter(None, (style.call_opens,)), *self._call_ends)
        self._header_marks = tuple(mark for mark in marks if mark != FENCE)
        self._header_ends = first_of(("{", *self._header_marks))
        until = {mark[0] for mark in self._header_marks} | set("{ \t\r\n")
        self._skippable_in_header = SkippableText("".join(sorted(until)), held=True)
        super().__init__(style, schemas)

    def begin(self, opener: str, call: int) -> None:
        """Start a block of calls.

        Args:
            opener: The text that has opened the block; empty if the JSON itself opens it.
            call: The number of the last call of the answer, -1 before the first one.

        """
        super().begin(opener, call)
        style = self._style
        self._bare = not opener or opener in style.doubtful
        self._head = 0  # where a header begins in the undecided text
        self._begun = False  # the name of the current call has been emitted
        self._in_list = style.lists and opener.endswith("[")
        self._after_mark = opener == style.call_opens != ""  # the mark before a call has come

    @property
    def skippable(self) -> SkippableText | None:
        """Description of the text that may bypass `feed` on the fast path; None if all text must be fed.

        After the call's name has been emitted, its arguments may bypass `feed`. Before that, only text that would be
        held back anyway may.
        """
        if self._state == "arguments":
            return SkippableText("", self._value)
        if self._state == "object":
            return self._object.skippable(not self._begun) if self._begun or self._room(self.MAX_HELD) else None
        if self._state == "between" and not self._in_list:
            return self._skippable_before_end()
        if self._state == "header" and self._room(self._head + MAX_HEADER) and self._room(self.MAX_HELD):
            return None if self._unprocessed else self._skippable_in_header  # white space waits for a second word
        return None

    @property
    def broken(self) -> bool:
        """Whether the next text is emitted as answer, because the block is malformed or is not a call."""
        return self._state in ("broken", "text")

    def _cut_short(self, held: str) -> list[Piece]:
        """Return pieces for the held text, which cannot become a complete call any more.

        If it has the name of a call within markup, that is one piece with the name. Other text is emitted as answer, or
        removed if it is markup behind a call.
        """
        if self._state == "between" and not held.strip() and not self._style.closes:
            return [plain(held, ANSWER)]
        if self._state == "between" and held.strip() in self._style.tails:
            return [markup(held)]
        if not (self._bare or self._begun):  # before its arguments
            name = self._object.name if self._state == "object" else ""
            if self._state == "header":
                name = self._marked_name(held[self._head :])
            if name:
                return [self._named(name, held)]
        return super()._cut_short(held)

    def copy(self) -> Self:
        other = super().copy()
        other._object = self._object.copy()
        return other

    def check(self) -> None:
        super().check()
        held = self._undecided.length
        check_restored(max(held, self._early.length) <= self.MAX_HELD, f"more than {self.MAX_HELD} characters are held")
        in_header = self._head <= held <= self._head + MAX_HEADER
        check_restored(self._state != "header" or in_header, "a header has no place in what is held")
        begun = self._state == "object" and self._begun
        check_restored(not (begun and held), "text of a call is held whose name has gone out")

    def state(self) -> Any:
        return [super().state(), self._object.state()]

    def restore(self, state: Any) -> None:
        own, call = msgspec.convert(state, tuple[Any, Any])
        super().restore(own)
        self._object.restore(call)

    # -- a step per state: processes text from `place`, adds pieces to `out`, returns the place of the rest ------------

    def _in_opened(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if style.answers and not self._in_list:
            mark, partial = mark_at(text, place, style.answers)
            if partial:
                return self._wait(text, place)
            if mark:
                end = self._hold(text, place, place + len(mark), out)
                self._close(out)
                return end
        elif (end := first_match(OTHER_THAN_SPACE, text, place)) > place:
            return self._hold(text, place, end, out)
        char = text[place]
        if style.call_opens and not self._after_mark:
            mark, partial = mark_at(text, place, (style.call_opens, *self._closers, *style.opens))
            if partial:
                return self._wait(text, place)
            if not mark or (mark in style.opens and mark != style.call_opens and not self._is_doubled(mark)):
                return self._release(f"{char!r} stands where a call should begin", place, out)
            self._after_mark = mark == style.call_opens
            end = self._hold(text, place, place + len(mark), out)
            if mark in self._closers:
                self._close(out)
            return end
        if not self._in_list:
            begins = (*style.opens, *filter(None, (style.call_opens,)))
            mark, partial = mark_at(text, place, begins)
            if partial:
                return self._wait(text, place)
            if mark and self._is_doubled(mark):
                return self._hold(text, place, place + len(mark), out)
            if mark:
                return self._release(f"{mark!r} stands where a call should begin", place, out)
        if char == "]" and self._in_list and self._bare and not self._begun:  # an empty list, not a call
            return self._release("", place, out)
        self._begun = False
        self._early.replace("")
        if char == "{" and (style.objects or self._in_list):
            self._state = "object"
            self._object.begin()
            return place
        if style.lists and char in "[]" and self._in_list == (char == "]"):
            self._in_list = char == "["
            end = self._hold(text, place, place + 1, out)
            if char == "]":
                self._end_list(out)
            return end
        if style.header and not self._in_list and char not in "[]{}":
            self._state, self._head = "header", self._undecided.length
            return place
        return self._release(f"{char!r} stands where a call should begin", place, out)

    def _in_header(self, text: str, place: int, out: list[Piece]) -> int:
        last = place + self._head + MAX_HEADER - self._undecided.length
        end, mark, partial = place, "", False
        word = _SECOND_WORD(text, place)
        while (stop := self._header_ends(text, end, last)) is not None:
            end = stop.start()
            mark, partial = mark_at(text, end, self._header_marks)
            if mark or partial or text[end] == "{":
                break
            end += 1
        else:
            end = min(len(text), last)
        if word and word.start() < end and word.end() <= last:
            end, stop, mark = word.start(), word, ""
            partial = text[end : word.end()].isspace()
        end = self._hold(text, place, end, out)
        if self._state != "header":
            return end
        if partial:
            return self._wait(text, end)
        if stop is None:
            if end < len(text):
                return self._release(f"there are no arguments within {MAX_HEADER} characters", end, out)
            return end
        before = str(self._undecided)[self._head :]
        if mark and (name := self._marked_name(before)):  # without arguments
            self._announce(name, out)
            out.append(Piece("", TOOL_CALL, "{}", call=self.call))
            self._complete(out)
            return end
        header = re.fullmatch(self._style.header, before) if text[end] == "{" else None
        if header is None:
            return self._release(f"{before!r:.80} is no name before arguments", end, out)
        self._announce(header["name"], out)
        self._state, self._value = "arguments", JsonValue()
        return end

    def _marked_name(self, text: str) -> str:
        """Return the function's name if `text` is a whole header with markup behind the name; else an empty text.

        Nothing but arguments can follow such a header.
        """
        header = re.fullmatch(self._style.header, text)
        return header["name"] if header and text[header.end("name") :].strip() else ""

    def _in_arguments(self, text: str, place: int, out: list[Piece]) -> int:
        end = self._pass_json(self._value, text, place, out)
        if self._value.done:
            self._complete(out)
        return end

    def _in_object(self, text: str, place: int, out: list[Piece]) -> int:
        call = self._object
        if self._begun:
            end, arguments = call.feed(text, place)
            stretch = text[place:end]
            if stretch:
                out.append(Piece(stretch, TOOL_CALL, stretch, call=self.call) if arguments else markup(stretch))
        else:
            end, arguments = call.feed(text[: place + self.MAX_HELD - self._undecided.length], place)
            self._undecided.add(text[place:end])
            if arguments:
                self._early.add(text[place:end])
            if call.error is None and self._undecided.length == self.MAX_HELD:
                return self._release(f"no name comes within {self.MAX_HELD} characters", end, out)
        if self._bare and not self._begun and self._is_text(call):
            return self._pass_over(end, out)
        if call.error is not None:
            return (self._break if self._begun else self._release)(call.error, end, out)
        if call.done and not call.begun:
            self._early.add("{}")
        if not self._begun and call.name and (call.begun or call.done):
            self._announce(call.name, out)
            if self._early.length:
                out.append(Piece("", TOOL_CALL, self._early.take(), call=self.call))
        if call.done:
            self._complete(out)
        elif call.settled and end < len(text) and text[end] not in ",} \t\r\n":  # perhaps without its last brace
            mark, partial = mark_at(text, end, (*self._call_ends, *self._style.opens, *("]" * self._in_list)))
            if partial:
                return self._wait(text, end)
            if mark and not self._bare:
                self._complete(out)
            else:
                self._break(call.refusal(text[end]), end, out)
        return end

    def _in_between(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if self._in_list and text[place] in ",]":
            end = self._hold(text, place, place + 1, out)
            if text[place] == ",":
                self._state = "opened"
            else:
                self._in_list = False
                self._end_list(out)
            return end
        if not self._bare and text[place] in "}]":  # one too many
            return self._hold(text, place, place + 1, out)
        inner = (style.call_opens, style.call_closes, *style.tails, *style.separators)
        marks = tuple(filter(None, (*style.opens, *self._closers, *inner)))
        mark, partial = mark_at(text, place, marks)
        if partial:
            return self._wait(text, place)
        if mark and mark not in style.opens:
            end = self._hold(text, place, place + len(mark), out)
            if mark in self._closers:
                self._close(out)
            elif mark == style.call_opens or mark in style.separators:
                self._state, self._after_mark = "opened", mark == style.call_opens
            else:
                out.append(markup(self._undecided.take()))
            return end
        if text[place] == "{" and "" in style.separators and not self._in_list:
            self._state = "opened"
            return place
        goes_on = not mark and bool(style.closes or self._in_list)
        return self._leave_calls(text, place, mark if str(self._undecided).strip() else "", goes_on, out)

    def _begin_again(self, mark: str) -> None:
        self._after_mark = False
        self._state = "opened" if mark == self._style.call_opens else "done"

    def _in_text(self, text: str, place: int, out: list[Piece]) -> int:
        end = self._value.feed(text, place)
        if end > place:
            out.append(plain(text[place:end], ANSWER))
        if self._value.done or self._value.error is not None:
            self._state = "done"
        return end

    def _in_rest(self, text: str, place: int, out: list[Piece]) -> int:
        if not self._bare:
            return super()._in_rest(text, place, out)
        # The call ends at a bracket that is not followed by more JSON.
        while (bracket := _END(text, place)) is not None:
            behind = first_match(OTHER_THAN_SPACE, text, bracket.end())
            if behind == len(text) and behind - bracket.end() < MAX_HEADER:
                break
            if behind == len(text) or text[behind] not in _CONTINUES:
                self._state = "done"
                self._pass_malformed(TOOL_CALL, text[place : bracket.end()], out)
                return bracket.end()
            self._pass_malformed(TOOL_CALL, text[place:behind], out)
            place = behind
        end = bracket.start() if bracket else len(text)
        self._pass_malformed(TOOL_CALL, text[place:end], out)
        return self._wait(text, end)

    # -- shared parts of the steps -------------------------------------------------------------------------------------

    def _named(self, name: str, source: str) -> Piece:
        return super()._named(function_of(name, self._schemas) if self._style.call_ids else name, source)

    def _announce(self, name: str, out: list[Piece]) -> None:
        """Emit the piece with the name of a call; the text held so far is its source."""
        self._begun = True
        out.append(self._named(name, self._undecided.take()))

    def _complete(self, out: list[Piece]) -> None:
        """Emit the piece that marks a call as complete, and continue behind the call."""
        self._end_call(out)
        self._after_mark = False

    def _end_list(self, out: list[Piece]) -> None:
        """Continue behind a list of calls: before the closing markup if the style has any; else end the block."""
        if self._style.closes or self._style.tails:
            out.append(markup(self._undecided.take()))
            self._state = "between"
        else:
            self._close(out)

    def _goes_on(self) -> bool:
        return bool(self._style.closes) and (self._called or self._state in ("header", "object"))

    def _is_text(self, call: CallObject) -> bool:
        """Return whether an object without markup around it is known not to be a call, though it may be incomplete."""
        if call.foreign or call.error is not None or (call.done and not call.begun):
            return True
        return bool(call.name and self._schemas.refusal(call.name))

    def _pass_over(self, place: int, out: list[Piece]) -> int:
        """Emit as answer the JSON value that the held text begins, calls in it included. Return `place`."""
        self._value = JsonValue()
        held = str(self._undecided)
        self._value.feed(held, first_match(_BRACKET, held))
        self._state = "done" if self._value.done or self._value.error is not None else "text"
        out.append(plain(self._undecided.take(), ANSWER))
        return place

    def _break(self, reason: str, place: int, out: list[Piece]) -> int:
        super()._break(reason, place, out)
        if self._bare and not self._schemas:  # perhaps no call after all
            self._state = "broken"
        return place
