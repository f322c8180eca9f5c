"""Pieces to deltas: those of the answer and the thinking through the stops, with their ids, and what of it was thinking."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.base import REASONING, TOOL_CALL, Piece, Saved
from tokenweir.stream.decode.thinking_budget import ThinkingMeter
from tokenweir.stream.events import Channel, Delta, ReasoningDelta, TextDelta, ToolCallDelta


class Router(Saved):
    """Makes the deltas of one answer, up to its end.

    Attributes:
        channel: Of the text that went out last.
        malformed: Why that text, which began as a tool call, is none.
        called: Whether a whole tool call has been given.
        stopped: Whether a stop string has ended the text.
        make: Makes a delta of more text of `channel`, from the text, its ids and the index.
        thinking: Counts the ids of thinking.
        out: The deltas that have been made and not yet been taken.

    """

    __slots__ = (
        "_at", "_call", "_detok", "_index", "_scope", "_searches", "_strip",
        "called", "channel", "make", "malformed", "out", "stopped", "thinking",
    )  # fmt: skip

    SAVED: ClassVar[dict[str, Any]] = {
        "channel": Channel,
        "malformed": str | None,
        "called": bool,
        "stopped": bool,
        "_at": Channel,
        "_call": int,
        "thinking": ThinkingMeter,
        "out": list[Delta],
    }

    def __init__(
        self,
        detok: _core.Detokenizer,
        scope: frozenset[Channel],
        strip: bool,
        index: int,
        thinking: ThinkingMeter,
        channel: Channel,
    ) -> None:
        """Begin on a channel.

        Args:
            detok: What knows the ids; all text that it gives comes back to it here.
            scope: The channels on which stops count; none where there are no stops.
            strip: Leave thinking out.
            index: The index of the deltas.
            thinking: Counts the ids of thinking.
            channel: Where the answer begins.

        """
        self._detok = detok
        self._scope = scope
        self._strip = strip
        self._index = index
        self._call = 0
        self._at = channel  # of what the splitter gave last, or of what comes after it
        self.malformed: str | None = None
        self.called = self.stopped = False
        self.thinking = thinking
        self.out: list[Delta] = []
        self.make: Callable[[str, list[int], int], Delta]
        self.enter(channel)
        self.count_thinking(channel is REASONING)

    def over(self, detok: _core.Detokenizer) -> Router:
        """Return an independent copy, over another object that knows the ids."""
        other = self.copy()
        other._detok = detok
        return other

    def restore(self, state: Any) -> None:
        """Go on in a state that `state` gave."""
        super().restore(state)
        self.enter(self.channel, self._call)

    def route(self, pieces: list[Piece], after: Channel) -> None:
        """Make deltas of pieces; `after` is what comes after them belongs to."""
        detok = self._detok
        for place, piece in enumerate(pieces, 1):
            channel, malformed = piece.channel, piece.malformed
            if self._searches and (channel is not self.channel or malformed != self.malformed):
                self.release()  # a stop does not reach over markup
            if channel is None:
                then = after
                if place < len(pieces):  # there are more
                    then = next((p.channel for p in pieces[place:] if p.channel is not None), after)
                at, self._at = self._at, then
                thinks = (at is REASONING or then is REASONING) and at is not TOOL_CALL and then is not TOOL_CALL
                if thinks is not self.thinking.on:
                    self.count_thinking(thinks)
                detok.drop(piece.source)
                continue
            if (channel is REASONING) is not self.thinking.on:
                self.count_thinking(channel is REASONING)
            self._at, self.malformed = channel, malformed
            if channel is not self.channel or piece.name:
                self.enter(channel, piece.call)
            if channel is not TOOL_CALL or (piece.text and piece.text == piece.source and not piece.name):
                text, ids = detok.send(piece.text)
                if text:
                    self.emit(text, ids)
                if self._searches and detok.matched is not None:
                    self.stopped = True
                    return
            else:
                self.called = self.called or piece.complete
                said = piece.call, piece.complete, piece.malformed
                self.out.append(ToolCallDelta(piece.name, piece.text, detok.take(piece.source), self._index, *said))

    def goes_on(self, channel: Channel) -> bool:
        """Whether text that comes next, on a channel, is like the last, or can be from here on."""
        if channel is not self.channel:
            if channel is TOOL_CALL:  # its number comes with its name
                return False
            self.enter(channel)
        if (channel is REASONING) is not self.thinking.on:
            self.count_thinking(channel is REASONING)
        return True

    def release(self) -> None:
        """Send out what is held as the beginning of a stop."""
        if self._searches and self._detok.holds:
            self.emit(*self._detok.release())

    def emit(self, text: str, ids: list[int]) -> None:
        """Make a delta of text that is final."""
        if text and self.malformed is None:
            self.out.append(self.make(text, ids, self._index))
        elif text:
            self.out.append(TextDelta(text, ids, self._index, self.malformed))

    def count_thinking(self, thinks: bool) -> None:
        """Count the ids that go out from here on as thinking, or not."""
        thinking = self.thinking
        if thinks is not thinking.on:
            thinking.switch(thinks, self._detok.passed)
            if thinking.budget is not None:
                self._detok.limit = thinking.next_limit()

    def enter(self, channel: Channel, call: int = 0) -> None:
        """Go on on another channel, or in another call."""
        self.channel, self._call = channel, call
        self._searches = channel in self._scope
        if channel is TOOL_CALL:
            self.make = partial(ToolCallDelta, "", call=call)
        else:
            self.make = ReasoningDelta if channel is REASONING else TextDelta
        self._detok.enter(self._searches, self._strip and channel is REASONING)
