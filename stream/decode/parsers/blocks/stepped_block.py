"""Base class of blocks of tool calls: a state machine with one step per state, and held text.

The table `STATES` at the top of a block's file has its states: where in the text each one is, and which states may
follow it. The step of the state "value begins" is the method `_in_value_begins`, which takes text from an index on, adds
pieces to a list and returns the index of the rest. What the steps share is here:

    _hold      keep text that is still ambiguous
    _wait      leave text unprocessed until more has come
    _release   emit the held text as answer, because it is not a call
    _break     end a call whose name has been emitted, because it is malformed
    _close     end the block, whose closing markup is held
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct

from tokenweir.encode._core import JsonValue
from tokenweir.stream.decode.parsers.blocks.text_buffer import HeldText
from tokenweir.stream.decode.parsers.pieces import ANSWER, CUT_SHORT, TOOL_CALL, Piece, markup, plain
from tokenweir.stream.decode.parsers.saved import CallNumber, Saved, ShortText, check_restored
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.splitter import MAX_PASSED, SkippableText
from tokenweir.stream.decode.parsers.text_search import find_mark, first_match
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.grammars import ToolStyle

OTHER_THAN_SPACE = re.compile(r"[^ \t\n\r]").search
"""Search for a character other than JSON white space."""

FENCE = "```"
"""A tail that arguments may contain, too."""

Step = Callable[[Any, str, int, list[Piece]], int]
"""Method that processes text from an index on, adds pieces to a list, and returns the index of the rest."""


class State(Struct, frozen=True):
    """A state of a block.

    Attributes:
        where: The place in the text.
        then: The states that may follow.
        emits: Text is emitted as it comes; only a possible prefix of markup is held.
        space: White space is "held", or "dropped" from the emitted arguments, before the step sees the text.

    """

    where: str
    then: tuple[str, ...]
    emits: bool = False
    space: Literal["", "held", "dropped"] = ""


def _behind_space(step: Step, space: str) -> Step:
    """Return a step that takes white space first, as `State.space` says; the step itself if that is empty."""

    def held(block: SteppedBlock, text: str, place: int, out: list[Piece]) -> int:
        end = first_match(OTHER_THAN_SPACE, text, place)
        return block._hold(text, place, end, out) if end > place else step(block, text, place, out)

    def dropped(block: SteppedBlock, text: str, place: int, out: list[Piece]) -> int:
        end = first_match(OTHER_THAN_SPACE, text, place)
        if end == place:
            return step(block, text, place, out)
        out.append(Piece(text[place:end], TOOL_CALL, "", call=block.call))
        return end

    return {"held": held, "dropped": dropped}.get(space, step)


BROKEN = {
    "broken": State("in the rest of a malformed block, which is answer", ("opened", "between", "done"), emits=True),
    "done": State("behind the block", ()),
}
RESTS = {
    "rest": State(
        "in the rest of a malformed call, which is emitted as arguments", ("opened", "between", "done"), emits=True
    ),
    **BROKEN,
}
"""The states at the end of most blocks."""


class SteppedBlock(Saved, ABC):
    """Base class of blocks of tool calls that are state machines: a method for each state processes its text.

    A block is the text behind an opening text, up to its end. One object, made with the style and the request's tools,
    reads all blocks of an answer, one after the other.

    Attributes:
        call: The number of the call whose name was emitted last; -1 before the first one.

    """

    STATES: ClassVar[Mapping[str, State]]
    STEPS: ClassVar[Mapping[str, Step]]
    """The step of each state except "done"."""

    MAX_HELD: ClassVar[int] = 1 << 62
    """Most characters that are held; what goes beyond them is not a call."""

    _bare: bool = False
    """The block began without certain markup, so that it may be an ordinary answer."""

    BASE_SAVED: ClassVar[dict[str, Any]] = {
        "_undecided": HeldText,
        "_unprocessed": ShortText,
        "_reason": ShortText,
        "_called": bool,
        "call": CallNumber,
    }
    """The mutable attributes that all these blocks share."""

    def __init_subclass__(cls, *, states: Mapping[str, State]) -> None:
        super().__init_subclass__()
        cls.STATES = states
        steps = {state: getattr(cls, f"_in_{state.replace(' ', '_')}") for state in states if state != "done"}
        cls.STEPS = {name: _behind_space(step, states[name].space) for name, step in steps.items()}

    def __init__(self, style: ToolStyle, schemas: ToolSchemas) -> None:
        """Configure the block for a style of tool calls.

        Args:
            style: The style.
            schemas: The JSON schemas of the request's tools, by function name; empty if the tools are unknown.

        """
        self._style = style
        self._schemas = schemas
        self._before_end = _before_end(style)
        self._undecided = HeldText()  # processed text that is ambiguous and not emitted yet
        self.begin("", -1)

    def begin(self, opener: str, call: int) -> None:
        """Start a block, in any state.

        Args:
            opener: The text that has opened the block, which is held; empty for a block without opening text.
            call: The number of the last call of the answer, -1 before the first one.

        """
        self._state = "opened"
        self._undecided.replace(opener)
        self._unprocessed = ""  # not processed yet: a possible prefix of markup
        self._reason = ""  # why the block is malformed
        self._called = False  # a call of this block has been announced, so its tags are certainly markup
        self.call = call

    def leave_opener(self) -> None:
        """Drop the opening text, which is part of the prompt and not of the answer."""
        self._undecided.take()

    def check(self) -> None:
        """Raise `ValueError` if a restored state is inconsistent."""
        check_restored(self._state in self.STEPS, "a block goes on that has ended, or is in an unknown state")
        check_restored(
            not self.STATES[self._state].emits or not self._undecided.length, "text is held that has been given"
        )
        check_restored(self._state != "rest" or self._called, "the rest of a call comes before its name")

    @property
    def done(self) -> bool:
        """Whether the block has ended."""
        return self._state == "done"

    @property
    def broken(self) -> bool:
        """Whether the rest of the block is emitted as answer.

        False in a malformed call whose name has been emitted: its rest stays on the channel of tool calls.
        """
        return self._state == "broken"

    @property
    def held(self) -> str:
        """The text of the block, its opening text included, that no piece contains yet."""
        return str(self._undecided) + self._unprocessed

    @property
    def skippable(self) -> SkippableText | None:
        """Description of text that may take the fast path, without `feed`; None if all text must be fed.

        Its channel is that of calls, or the answer if the block has broken. It may name `closers`: texts that end the
        block if only markup is held before them. The block is not fed these.
        """
        return None

    def feed(self, text: str, out: list[Piece]) -> str:
        """Process more text, append the final pieces to `out`, and return the text after the block.

        Return an empty text while the block is open.
        """
        text = self._unprocessed + text
        self._unprocessed = ""
        place = 0
        while place < len(text) and (state := self._state) != "done":
            place = self.STEPS[state](self, text, place, out)
        return text[place:]

    def finish(self) -> list[Piece]:
        """End the answer: return pieces for the text that is held back. A call that has not ended stays incomplete."""
        held = self.held
        if not held:
            return []
        if self._state == "broken":
            return [Piece(held, ANSWER, held, malformed=self._reason)]
        if self._state == "rest":
            return [Piece(held, TOOL_CALL, held, call=self.call, malformed=self._reason)]
        return self._cut_short(held)

    def _cut_short(self, held: str) -> list[Piece]:
        """Return pieces for the held text of an answer that ends before the block, neither "broken" nor in a "rest"."""
        if self._called and not self._bare:  # in the block's markup
            return [markup(held)]
        return [Piece(held, ANSWER, held, malformed=None if self._bare else CUT_SHORT)]

    @abstractmethod
    def _goes_on(self) -> bool:
        """Return whether the markup shows that the block continues behind text that is not a call."""

    def _skippable_before_end(self) -> SkippableText | None:
        """Return a description of the white space that may bypass `feed` where the block may end; None if nothing may."""
        return self._before_end if not self._unprocessed and self._room(self.MAX_HELD) else None

    def _room(self, most: int) -> bool:
        """Return whether `most` characters are enough for the held text and all that the fast path may add to it unseen."""
        return self._undecided.length + MAX_PASSED <= most

    def _hold(self, text: str, place: int, end: int, out: list[Piece]) -> int:
        """Hold `text[place:end]`, which is processed and still ambiguous, and return the index after it.

        What would exceed `MAX_HELD` characters is not held: the held text is then no call.
        """
        room = self.MAX_HELD - self._undecided.length
        self._undecided.add(text[place : min(end, place + room)])
        if end - place > room:
            return self._release(f"a call is not known as such after {self.MAX_HELD} characters", place + room, out)
        return end

    def _release(self, reason: str, place: int, out: list[Piece]) -> int:
        """Emit the held text as answer, because it is not a call; `reason` says why. Return `place`.

        The block ends. If its markup shows that it continues, its rest becomes answer as well.
        """
        if held := self._undecided.take():
            out.append(Piece(held, ANSWER, held, malformed=None if self._bare else reason))
        self._state, self._reason = "broken" if not self._bare and self._goes_on() else "done", reason
        return place

    def _wait(self, text: str, place: int) -> int:
        """Keep `text[place:]` unprocessed until more text has come, and return the length of `text`."""
        self._unprocessed = text[place:]
        return len(text)

    def _is_doubled(self, mark: str) -> bool:
        """Return whether the opening text `mark` would be held twice in a row, at most white space apart: then it is markup.

        A third one is not. One that the prompt ends with counts, too.
        """
        before = str(self._undecided).rstrip()
        if not before:
            return not self._called
        return before.endswith(mark) and not before.removesuffix(mark).rstrip().endswith(mark)

    def _in_broken(self, text: str, place: int, out: list[Piece]) -> int:
        """Emit text from index `place` on as answer, up to the end of the block or the start of another call or block.

        Return the index of the unprocessed text.
        """
        return self._pass_rest(ANSWER, text, place, out)

    def _in_rest(self, text: str, place: int, out: list[Piece]) -> int:
        """Emit the rest of a malformed call unchanged on the channel of calls, up to its end or another call.

        Return the index of the unprocessed text.
        """
        return self._pass_rest(TOOL_CALL, text, place, out)

    def _pass_rest(self, channel: Channel, text: str, place: int, out: list[Piece]) -> int:
        """Emit malformed text on `channel`, up to the next tag. Return the index of the unprocessed text.

        A closing tag is removed if a call of this block has been emitted, and else is emitted with the text.
        """
        style, called = self._style, self._called
        begins = (*style.opens, *filter(None, (style.call_opens,)))
        ends = tuple(filter(None, (style.closes, style.call_closes)))
        tails = tuple(tail for tail in style.tails if tail != FENCE)
        at, mark = find_mark(text, place, (*((*ends, *tails) if called else ends[:1]), *begins))
        end = at if called or mark in begins else at + len(mark)
        self._pass_malformed(channel, text[place:end], out)
        if not mark:
            return self._wait(text, at)
        if mark in begins:
            self._begin_again(mark)
            return at
        if called:
            out.append(markup(mark))
        self._state = "between" if called and mark != style.closes else "done"
        return at + len(mark)

    def _pass_malformed(self, channel: Channel, text: str, out: list[Piece]) -> None:
        """Emit text of a malformed call or block unchanged on `channel`."""
        if text:
            number = self.call if channel is TOOL_CALL else 0
            out.append(Piece(text, channel, text, call=number, malformed=self._reason))

    def _begin_again(self, mark: str) -> None:
        """Go on at `mark`, the opening text of a call, which continues the block, or of a block, which ends it."""
        self._state = "done" if mark in self._style.opens else "opened"

    def _break(self, reason: str, place: int, out: list[Piece]) -> int:
        """End a call whose name has been emitted, with the reason why it is malformed. Return `place`.

        The held text and the rest of the call are emitted unchanged on the channel of calls.
        """
        out.append(Piece("", TOOL_CALL, "", call=self.call, malformed=reason))
        self._state, self._reason = "rest", reason
        self._pass_malformed(TOOL_CALL, self._undecided.take(), out)
        return place

    def _named(self, name: str, source: str) -> Piece:
        """Count a new call and return the piece with its name; `source` is the generated text that it stands for."""
        self.call += 1
        self._called = True
        return Piece(source, TOOL_CALL, "", name, self.call)

    def _pass_json(self, value: JsonValue, text: str, place: int, out: list[Piece]) -> int:
        """Feed text from `place` on to a JSON value, emit it as arguments of the call; return the index after it.

        An error of the value ends the call.
        """
        end = value.feed(text, place)
        if end > place:
            out.append(Piece(text[place:end], TOOL_CALL, text[place:end], call=self.call))
        return end if value.error is None else self._break(value.error, end, out)

    def _end_call(self, out: list[Piece]) -> None:
        """Emit the piece that marks a call as complete, and continue behind the call."""
        out.append(Piece("", TOOL_CALL, "", call=self.call, complete=True))
        self._state = "between"

    def _leave_calls(self, text: str, place: int, mark: str, closes: bool, out: list[Piece]) -> int:
        """Leave the calls of a block at text that does not continue them. Return `place`.

        Args:
            mark: The opening text of the next block or call at `place`, which ends this block; otherwise empty.
            closes: Whether the block's closing text is still to come. The text before it is emitted as answer.

        """
        held = self._undecided.take()
        if mark or not closes:
            if held:
                out.append(markup(held) if mark else plain(held, ANSWER))
            self._state = "done"
        else:
            self._state, self._reason = "broken", f"{text[place]!r} stands after a call"
            self._pass_malformed(ANSWER, held, out)
        return place

    def _close(self, out: list[Piece]) -> None:
        """End the block. The held text is its closing markup, which is removed."""
        out.append(markup(self._undecided.take()))
        self._state = "done"


def _before_end(style: ToolStyle) -> SkippableText | None:
    """Return a description of the white space that may bypass `feed` between markup, up to the style's closing text.

    Return None if the style has no closing text, or one that begins other markup too.
    """
    others = (*style.opens, style.call_opens, style.call_closes, *style.tails, *style.separators)
    if not style.closes or any(mark.startswith(style.closes) for mark in others):
        return None
    return SkippableText(None, held=True, closers=(style.closes,))
