"""Pieces to what goes out: through the stops, with their ids, and what of it was thinking.

A `Router` makes deltas, for `ChatDecoder`. A `ChunkRouter` makes the chunks of the async stages, by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.stream.decode.chunk import Chunk
from tokenweir.stream.decode.parsers.base import REASONING, TOOL_CALL, CallNumber, Piece, Saved, ShortText
from tokenweir.stream.events.deltas import Channel, Delta, ReasoningDelta, TextDelta, ToolCallDelta


class Router(Saved):
    """Makes the deltas of one answer, up to its end.

    Attributes:
        channel: Of the text that went out last.
        malformed: Why that text, which began as a tool call, is none.
        called: Whether a whole tool call has been given.
        stopped: Whether a stop string has ended the text, or the only call that there may be.
        make: Makes a delta of more text of `channel`, from the text, its ids and the index.
        out: The deltas that have been made and not yet been taken.

    """

    __slots__ = (
        "_answer", "_at", "_call", "_index", "_one_call", "_scope", "_searches", "_strip",
        "called", "channel", "make", "malformed", "out", "stopped",
    )  # fmt: skip

    SAVED: ClassVar[dict[str, Any]] = {
        "channel": Channel,
        "malformed": ShortText | None,
        "called": bool,
        "stopped": bool,
        "_at": Channel,
        "_call": CallNumber,
        "out": list[Delta],
    }

    def __init__(
        self,
        answer: _core.AnswerText,
        scope: frozenset[Channel],
        strip: bool,
        index: int,
        channel: Channel,
        *,
        one_call: bool = False,
    ) -> None:
        """Begin on a channel.

        Args:
            answer: What knows the ids; all text that was added to it comes back to it here.
            scope: The channels on which stops count; none where there are no stops.
            strip: Leave thinking out.
            index: The index of the deltas.
            channel: Where the answer begins.
            one_call: The first whole call ends the answer.

        """
        self._answer = answer
        self._one_call = one_call
        self._scope = scope
        self._strip = strip
        self._index = index
        self._call = 0
        self._at = channel  # of what the splitter gave last, or of what comes after it
        self.malformed: str | None = None
        self.called = self.stopped = False
        self.out: list[Any] = []
        self.make: Callable[[str, list[int], int], Delta]
        self.enter(channel)
        answer.think(channel is REASONING)

    def over(self, answer: _core.AnswerText) -> Router:
        """Return an independent copy, over another object that knows the ids."""
        other = self.copy()
        other._answer = answer
        return other

    def restore(self, state: Any) -> None:
        """Go on in a state that `state` gave."""
        super().restore(state)
        self.enter(self.channel, self._call)

    def route(self, pieces: list[Piece], after: Channel) -> None:
        """Send pieces out; `after` is what comes after them belongs to."""
        answer = self._answer
        for place, piece in enumerate(pieces, 1):
            channel, malformed = piece.channel, piece.malformed
            if self._searches and (channel is not self.channel or malformed != self.malformed) and answer.stop_begun:
                self._send(None)  # a stop does not reach over markup
            if channel is None:
                then = after
                if place < len(pieces):  # there are more
                    then = next((p.channel for p in pieces[place:] if p.channel is not None), after)
                at, self._at = self._at, then
                answer.think((at is REASONING or then is REASONING) and at is not TOOL_CALL and then is not TOOL_CALL)
                self._cut_out(piece.source, after)
                continue
            answer.think(channel is REASONING)
            self._at, self.malformed = channel, malformed
            if channel is not self.channel or piece.name:
                self.enter(channel, piece.call)
            if channel is not TOOL_CALL or (piece.text and piece.text == piece.source and not piece.name):
                self._send(piece.text)
                if self._searches and answer.matched is not None:
                    self.stopped = True
                    return
            else:
                self.called = self.called or piece.complete
                self._tell(piece)
                if piece.complete and self._one_call:
                    self.stopped = True
                    return

    def goes_on(self, channel: Channel) -> bool:
        """Whether text that comes next, on a channel, is like the last, or can be from here on."""
        if channel is not self.channel:
            if channel is TOOL_CALL:  # its number comes with its name
                return False
            self.enter(channel)
        self._answer.think(channel is REASONING)
        return True

    def cross(self, channel: Channel) -> None:
        """Go on behind a tag that the core has cut out."""
        self._at, self.malformed = channel, None
        self.enter(channel)

    def release(self) -> None:
        """End the search for stops: what is held as the beginning of one is text."""
        if self._searches and self._answer.stop_begun:
            self._send(None)

    def _send(self, text: str | None) -> None:
        """Send text through the stops, or what they hold."""
        text, ids = self._answer.send(text)
        if text:
            self.emit(text, ids)

    def _cut_out(self, source: str, after: Channel) -> None:
        """Leave markup out; `after` is what comes after it belongs to."""
        self._answer.drop(source)

    def _tell(self, piece: Piece) -> None:
        """Say of a call what is no text of the model's."""
        said = piece.call, piece.complete, piece.malformed
        self.out.append(ToolCallDelta(piece.name, piece.text, self._answer.take(piece.source), self._index, *said))

    def emit(self, text: str, ids: list[int]) -> None:
        """Make a delta of text that is final."""
        if text and self.malformed is None:
            self.out.append(self.make(text, ids, self._index))
        elif text:
            self.out.append(TextDelta(text, ids, self._index, self.malformed))

    def enter(self, channel: Channel, call: int = 0) -> None:
        """Go on on another channel, or in another call."""
        self.channel, self._call = channel, call
        self._searches = channel in self._scope
        if channel is TOOL_CALL:
            self.make = partial(ToolCallDelta, "", call=call)
        else:
            self.make = ReasoningDelta if channel is REASONING else TextDelta
        self._answer.enter(self._searches, self._strip and channel is REASONING)


class ChunkRouter(Router):
    """Makes the chunks of a stage: one for each place where ids end, and one without text for what is cut out.

    The latter tells the next stage that the text is not of one piece there.
    """

    __slots__ = ()

    def __init__(
        self,
        answer: _core.AnswerText,
        channel: Channel,
        *,
        scope: frozenset[Channel] = frozenset(),
        strip: bool = False,
    ) -> None:
        """Begin on a channel; the arguments are those of `Router`."""
        super().__init__(answer, scope, strip, 0, channel)

    def pass_on(self, chunk: Chunk) -> None:
        """Send out a chunk as it is; what is held goes first."""
        self.release()
        self.out.append(replace(chunk, ids=[*self._answer.finish(), *chunk.ids]))

    def take(self) -> list[Chunk]:
        """Take the chunks that have been made."""
        out, self.out = self.out, []
        return out

    def take_all(self, channel: Channel) -> list[Chunk]:
        """Take them, with the ids that are left in a last one."""
        if ids := self._answer.finish():
            self.out.append(Chunk(ids, "", channel))
        return self.take()

    def _send(self, text: str | None) -> None:
        if text is not None and self._strip and self.channel is REASONING:
            self._cut_out(text, REASONING)
            return
        for part, ids in self._answer.send_in_parts(text):
            self.out.append(Chunk(ids, part, self.channel, call=self._call, malformed=self.malformed))

    def _cut_out(self, source: str, after: Channel) -> None:
        self.out.append(Chunk(self._answer.take(source), "", after))

    def _tell(self, piece: Piece) -> None:
        ids = self._answer.take(piece.source)
        self.out.append(Chunk(ids, piece.text, TOOL_CALL, piece.name, piece.call, piece.complete, piece.malformed))
