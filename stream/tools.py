"""Tool calls apart from the answer: text in, pieces out, each call's name first and then its arguments as they come.

A call's name goes out when its arguments begin, or when its object ends without any. Before that it may still turn
out to be no call; then its text goes out as answer, with the reason. If it breaks afterwards, a piece says so, and
what is left of its block goes out as answer with the same reason. `complete` is said of a call when the JSON of its
object, or of its arguments under a header, has closed and would parse; what is missing of the markup after that does
not matter. Arguments are passed on as they were written: where a model wrote them as a string with JSON in it, that
string is the text. A call that has none is given `{}`.

At most `MAX_HELD` characters are held back: those of one call before its name is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import cache

from tokenweir.stream.call_object import CallObject
from tokenweir.stream.events import Channel
from tokenweir.stream.json_value import JsonValue
from tokenweir.stream.pieces import Piece, mark_at, markup, plain
from tokenweir.templates.tool_styles import ToolStyle, tool_style_of

MAX_HELD = 1 << 15
MAX_HEADER = 1024

_FIRST_BRACE = re.compile("{").search
_FIRST_BRACE_OR_SPACE = re.compile("[ {]").search  # text that only begins as a header does is soon known for what it is
CUT_SHORT = "the answer ends inside a tool call"
_SPACE = re.compile(r"[ \t\n\r]*")


@cache
def _first_of(marks: tuple[str, ...]) -> Callable[..., re.Match[str] | None]:
    """Make a search for the characters that some texts begin with."""
    return re.compile("[" + "".join(re.escape(char) for char in {mark[0] for mark in marks}) + "]").search


class ToolParser:
    """Splits an answer's text into text and tool calls. A `Splitter`.

    The states: "answer"; "opened", where a call or the list of them must begin; "header" and "arguments", or
    "object", which are a call; "between", after one; and "broken", up to where a block that has broken may end.

    Attributes:
        channel: What the next text belongs to.

    """

    __slots__ = (
        "_after_mark", "_ahead", "_bare", "_begins", "_begun", "_call", "_early", "_head", "_header", "_in_list",
        "_object", "_reason", "_state", "_style", "_tagged", "_undecided", "_value",
    )  # fmt: skip

    def __init__(self, style: str | ToolStyle) -> None:
        """Start at the beginning of an answer.

        Args:
            style: How the model writes calls, or the name of a style in `TOOL_STYLES` or of a family of models.

        Raises:
            ValueError: No style has the name.

        """
        self._style = style = tool_style_of(style)
        self._header = re.compile(style.header)
        self._begins = _first_of((*style.opens, "{") if style.bare else style.opens)
        self._state = "answer"
        self._bare = style.bare  # only white space so far: an object here would be a call
        self._ahead = ""  # not looked at yet: the beginning of what may become markup
        self._undecided = ""  # looked at, but not given: a call whose name is not known, white space after one
        self._head = 0  # where in that a header begins
        self._early = ""  # arguments that came before the name
        self._call = -1  # the number of the call whose name went out last
        self._begun = False  # the name of the call that is being read has gone out
        self._tagged = False  # the block began with an opening text
        self._in_list = False
        self._after_mark = False  # the text before a call has come
        self._reason = ""  # why the block has broken
        self._object = CallObject(style.name_keys, style.argument_keys)
        self._value = JsonValue()

    @property
    def channel(self) -> Channel:
        """What the next text belongs to."""
        return Channel.ANSWER if self._state in ("answer", "broken") else Channel.TOOL_CALL

    @property
    def held(self) -> str:
        """The text that may still be part of a call, or of its markup."""
        return self._undecided + self._ahead

    @property
    def ends(self) -> frozenset[str]:
        """The characters with which a block's opening text ends."""
        return frozenset(text[-1] for text in self._style.opens) | ({"{"} if self._bare else frozenset())

    @property
    def in_block(self) -> bool:
        """Whether a block of calls has begun, and its end has not come."""
        return self._state != "answer"

    @property
    def calm(self) -> bool:
        """Whether text without any of `starts` passes whole; `skim` must see it."""
        return self._state == "answer" and not self._ahead

    @property
    def settled(self) -> bool:
        """Whether the parser is calm and need not even see such text."""
        return self._state == "answer" and not self._ahead and not self._bare

    @property
    def starts(self) -> frozenset[str]:
        """The characters that a block begins with."""
        return frozenset(text[0] for text in self._style.opens) | ({"{"} if self._bare else frozenset())

    def split(self, text: str) -> list[Piece]:
        """Take more text; give what is final. The joined sources are the text itself."""
        out: list[Piece] = []
        while text:
            text = self._ahead + text
            self._ahead = ""
            text = text[self._answer(text, 0, out) :] if self._state == "answer" else self.split_block(text, out)
        return out

    def split_block(self, text: str, out: list[Piece]) -> str:
        """Take text of a block, which has begun; add what is final to `out`, and return the text after the block."""
        text = self._ahead + text
        self._ahead = ""
        place = 0
        while place < len(text) and self._state != "answer":
            place = _STEPS[self._state](self, text, place, out)
        return text[place:]

    def skim(self, text: str) -> None:
        """Take text that has none of `starts` while calm: it passes whole."""
        if self._bare and text.strip():
            self._bare = False

    def finish(self) -> list[Piece]:
        """Give the held text: nothing follows that could make a call of it."""
        held, state = self._undecided + self._ahead, self._state
        self._undecided = self._ahead = ""
        self._state = "answer"
        if not held:
            return []
        if state == "between" and not held.strip() and self._style.closes:
            return [markup(held)]
        cut = None if state == "answer" or (state == "between" and not held.strip()) else CUT_SHORT
        return [Piece(held, Channel.ANSWER, held, malformed=self._reason if state == "broken" else self._blame(cut))]

    def copy(self) -> ToolParser:
        """Return an independent parser in the same state."""
        other = copy(self)
        other._object, other._value = self._object.copy(), copy(self._value)
        return other

    # -- one step in each state: it takes text from `place` on, adds to `out`, and returns the place after ---------------

    def _answer(self, text: str, place: int, out: list[Piece]) -> int:
        style, at = self._style, place
        opener, partial, bare = "", False, False
        while (begin := self._begins(text, at)) is not None:
            at = begin.start()
            bare = self._bare and text[at] == "{" and not text[place:at].strip()
            opener, partial = mark_at(text, at, style.opens)
            if opener or partial or bare:
                break
            at += 1
        if begin is None:
            at = len(text)
        if at > place:
            self.skim(text[place:at])
            out.append(plain(text[place:at], Channel.ANSWER))
        if opener or bare:
            self._state, self._tagged = "opened", bool(opener)
            self._bare = self._in_list = self._after_mark = False
            return self._hold(text, at, at + len(opener), out)
        self._ahead = text[at:]
        return len(text)

    def _opened(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if (end := _SPACE.match(text, place).end()) > place:  # type: ignore[union-attr]
            return self._hold(text, place, end, out)
        char = text[place]
        if style.call_opens and not self._after_mark:
            mark, partial = mark_at(text, place, (style.call_opens, style.closes))
            if partial:
                self._ahead = text[place:]
                return len(text)
            if not mark:
                return self._release(f"{char!r} stands where a call should begin", place, out)
            self._after_mark = mark == style.call_opens
            end = self._hold(text, place, place + len(mark), out)
            if not self._after_mark:
                self._close(out)
            return end
        self._begun, self._early = False, ""
        if char == "{" and style.objects:
            self._state, self._object = "object", CallObject(style.name_keys, style.argument_keys)
            return place
        if style.lists and char in "[]" and self._in_list == (char == "]"):
            self._in_list = char == "["
            end = self._hold(text, place, place + 1, out)
            if char == "]":
                self._end_list(out)
            return end
        if style.header and not self._in_list and char not in "[]{}":
            self._state, self._head = "header", len(self._undecided)
            return place
        return self._release(f"{char!r} stands where a call should begin", place, out)

    def _in_header(self, text: str, place: int, out: list[Piece]) -> int:
        room = self._head + MAX_HEADER - len(self._undecided)
        search = _FIRST_BRACE if self._style.call_opens else _FIRST_BRACE_OR_SPACE
        stop = search(text, place, place + room)
        end = stop.start() if stop else min(len(text), place + room)
        end = self._hold(text, place, end, out)
        if stop is None:
            if end < len(text):
                return self._release(f"there are no arguments within {MAX_HEADER} characters", end, out)
            return end
        header = self._header.fullmatch(self._undecided, self._head) if text[end] == "{" else None
        if header is None:
            return self._release(f"{self._undecided[self._head :]!r} is no name before arguments", end, out)
        self._announce(header["name"], out)
        self._state, self._value = "arguments", JsonValue()
        return end

    def _in_arguments(self, text: str, place: int, out: list[Piece]) -> int:
        end = self._value.feed(text, place)
        if end > place:
            out.append(Piece(text[place:end], Channel.TOOL_CALL, text[place:end], call=self._call))
        if self._value.error is not None:
            self._break(self._value.error, out)
        elif self._value.done:
            self._complete(out)
        return end

    def _in_object(self, text: str, place: int, out: list[Piece]) -> int:
        call = self._object
        if self._begun:
            end, arguments = call.feed(text, place)
            stretch = text[place:end]
            if stretch:
                out.append(
                    Piece(stretch, Channel.TOOL_CALL, stretch, call=self._call) if arguments else markup(stretch)
                )
        else:
            end, arguments = call.feed(text[: place + MAX_HELD - len(self._undecided)], place)
            self._undecided += text[place:end]
            self._early += text[place:end] if arguments else ""
            if call.error is None and len(self._undecided) == MAX_HELD:
                return self._release(f"no name comes within {MAX_HELD} characters", end, out)
        if call.error is not None:
            if not self._begun:
                return self._release(call.error, end, out)
            self._break(call.error, out)
            return end
        if call.done and not call.begun:
            if not self._tagged:  # an answer that is an object and no call
                return self._release("", end, out)
            self._early = "{}"
        if not self._begun and call.name and (call.begun or call.done):
            self._announce(call.name, out)
            if self._early:
                out.append(Piece("", Channel.TOOL_CALL, self._early, call=self._call))
        if call.done:
            self._complete(out)
        return end

    def _between(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        if (end := _SPACE.match(text, place).end()) > place:  # type: ignore[union-attr]
            return self._hold(text, place, end, out)
        if self._in_list and text[place] in ",]":
            end = self._hold(text, place, place + 1, out)
            if text[place] == ",":
                self._state = "opened"
            else:
                self._in_list = False
                self._end_list(out)
            return end
        inner = (style.call_opens, style.call_closes, *style.tails, *style.separators)
        marks = tuple(filter(None, (style.closes, *inner, *style.opens)))
        mark, partial = mark_at(text, place, marks)
        if partial:
            self._ahead = text[place:]
            return len(text)
        if mark and mark not in style.opens:
            end = self._hold(text, place, place + len(mark), out)
            if mark == style.closes:
                self._close(out)
            elif mark == style.call_opens or mark in style.separators:
                self._state, self._after_mark = "opened", mark == style.call_opens
            else:
                out.append(markup(self._undecided))
                self._undecided = ""
            return end
        if text[place] == "{" and "" in style.separators and not self._in_list:
            self._state = "opened"
        elif mark or not (style.closes or self._in_list):  # the block has ended without a word
            if self._undecided:
                out.append(plain(self._undecided, Channel.ANSWER))
            self._undecided, self._state = "", "answer"
        else:
            self._reason = f"{text[place]!r} stands after a call"
            self._state = "broken"
            if self._undecided:
                out.append(Piece(self._undecided, Channel.ANSWER, self._undecided, malformed=self._reason))
            self._undecided = ""
        return place

    def _broken(self, text: str, place: int, out: list[Piece]) -> int:
        style = self._style
        ends = tuple(filter(None, (style.closes, style.call_closes)))
        marks = (*ends, *style.opens, *filter(None, (style.call_opens,)))
        at, mark, partial = place, "", False
        search = _first_of(marks)
        while (begin := search(text, at)) is not None:
            at = begin.start()
            mark, partial = mark_at(text, at, marks)
            if mark or partial:
                break
            at += 1
        if begin is None:
            at = len(text)
        end = at + len(mark) if mark in ends else at
        if end > place:
            out.append(Piece(text[place:end], Channel.ANSWER, text[place:end], malformed=self._reason))
        if mark:
            self._after_mark = False
            self._state = {style.call_closes: "between", style.call_opens: "opened"}.get(mark, "answer")
            return end
        self._ahead = text[end:]
        return len(text)

    # -- what the steps have in common ---------------------------------------------------------------------------------

    def _hold(self, text: str, place: int, end: int, out: list[Piece]) -> int:
        """Hold text back, as much as may be held; return the place after it."""
        room = MAX_HELD - len(self._undecided)
        self._undecided += text[place : min(end, place + room)]
        if end - place > room:
            return self._release(f"a call is not known as such after {MAX_HELD} characters", place + room, out)
        return end

    def _blame(self, reason: str | None) -> str | None:
        """Give the reason why text is not markup, if there was markup."""
        return reason if self._tagged else None

    def _announce(self, name: str, out: list[Piece]) -> None:
        """Give the name of a call."""
        self._call += 1
        self._begun = True
        out.append(Piece(self._undecided, Channel.TOOL_CALL, "", name, self._call))
        self._undecided = ""

    def _complete(self, out: list[Piece]) -> None:
        """Say that a call is whole."""
        out.append(Piece("", Channel.TOOL_CALL, "", call=self._call, complete=True))
        self._state, self._after_mark = "between", False

    def _end_list(self, out: list[Piece]) -> None:
        """Go on after a list: with the block's closing text, if it has one."""
        if self._style.closes:
            self._state = "between"
        else:
            self._close(out)

    def _close(self, out: list[Piece]) -> None:
        """Cut out the end of a block."""
        out.append(markup(self._undecided))
        self._undecided, self._state = "", "answer"

    def _release(self, reason: str, place: int, out: list[Piece]) -> int:
        """Give as answer what was held: it is no call."""
        inside = self._state in ("header", "object") and self._tagged and self._style.closes
        if self._undecided:
            out.append(Piece(self._undecided, Channel.ANSWER, self._undecided, malformed=self._blame(reason)))
        self._undecided = ""
        self._reason = reason
        self._state = "broken" if inside else "answer"
        return place

    def _break(self, reason: str, out: list[Piece]) -> None:
        """End a call whose name has gone out, and say why it is none."""
        out.append(Piece("", Channel.TOOL_CALL, "", call=self._call, malformed=reason))
        self._state, self._reason = "broken", reason


_STEPS = {
    "opened": ToolParser._opened,
    "header": ToolParser._in_header,
    "arguments": ToolParser._in_arguments,
    "object": ToolParser._in_object,
    "between": ToolParser._between,
    "broken": ToolParser._broken,
}
