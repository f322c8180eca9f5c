"""Routing of pieces to deltas: stop strings, ids, channels.

`Router` makes deltas for `ChatDecoder`. `ChunkRouter` makes the chunks of the async stages by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from tokenweir.encode import _core
from tokenweir.stream.decode.chunk import Chunk
from tokenweir.stream.decode.parsers.pieces import REASONING, TOOL_CALL, Piece
from tokenweir.stream.decode.parsers.saved import CallNumber, Saved, ShortText
from tokenweir.stream.events.deltas import Channel, Delta, ReasoningDelta, TextDelta, ToolCallDelta


class Router(Saved):
    """Maker of the deltas of one answer, from the pieces that a splitter returns.

    Attributes:
        channel: The channel of the text that was emitted last.
        malformed: Why that text, which began as a tool call, is not one; None for other text.
        called: Whether a complete tool call has been emitted.
        stopped: Whether a stop string, or the only call that is allowed, has ended the text.
        make: Factory of text deltas on `channel`, from the text, its ids and the index.
        out: Deltas that have not been taken yet.

    """

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
        call_ids: Callable[[], str] | None = None,
        back: Mapping[int, str] = {},
    ) -> None:
        """Start on a channel.

        Args:
            answer: Text with its ids. All text that was added to it must pass through this router.
            scope: The channels on which stop strings count; empty without stop strings.
            strip: Drop the thinking.
            index: The `index` of all deltas.
            channel: The channel of the first text.
            one_call: The first complete call ends the answer.
            call_ids: Makes the id of each call; without it calls have no ids.
            back: A table for `str.translate` that gives tags in text their own first characters.

        """
        self._answer = answer
        self._one_call = one_call
        self._call_ids = call_ids
        self._back = back
        self._scope = scope
        self._strip = strip
        self._index = index
        self._call = 0
        self._at = channel  # of the splitter's last piece, or of the text after it
        self.malformed: str | None = None
        self.called = self.stopped = False
        self.out: list[Any] = []
        self.make: Callable[[str, list[int], int], Delta]
        self.enter(channel)
        answer.think(channel is REASONING)
        if channel is REASONING:
            answer.begin_block()  # behind the tag in the prompt

    def copy_with(self, answer: _core.AnswerText) -> Router:
        """Return an independent copy that works on `answer`, a copy of this router's text."""
        other = self.copy()
        other._answer = answer
        return other

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.enter(self.channel, self._call)

    def route(self, pieces: list[Piece], after: Channel) -> None:
        """Turn pieces into deltas in `out`, up to a stop string.

        Args:
            pieces: The pieces of a splitter.
            after: The channel of the text that follows them.

        """
        answer = self._answer
        for place, piece in enumerate(pieces, 1):
            channel, malformed = piece.channel, piece.malformed
            if malformed is not None and self._back:
                piece = replace(piece, malformed=self._reason(malformed))
                malformed = piece.malformed
            if self._searches and (channel is not self.channel or malformed != self.malformed) and answer.stop_begun:
                self._send(None)  # a stop string does not span markup
            if channel is None:
                then = after
                if place < len(pieces):  # pieces are left
                    then = next((p.channel for p in pieces[place:] if p.channel is not None), after)
                at, self._at = self._at, then
                answer.think((at is REASONING or then is REASONING) and at is not TOOL_CALL and then is not TOOL_CALL)
                self._cut_out(piece.source, after)
                continue
            answer.think(channel is REASONING)
            if channel is not self.channel or piece.name:
                self._change(channel, piece.call)
            if malformed is not None:
                self._send_space(anywhere=True)
            self._at, self.malformed = channel, malformed
            if channel is not TOOL_CALL or (piece.text and piece.text == piece.source and not piece.name):
                self._send(piece.text)
                if self._searches and answer.matched is not None:
                    self.stopped = True
                    return
            else:
                self.called = self.called or piece.complete
                self._emit_event(piece)
                if piece.complete and self._one_call:
                    self.stopped = True
                    return

    def try_switch_to(self, channel: Channel) -> bool:
        """Return whether text on `channel` can be emitted next without a piece of the splitter; if so, switch to it.

        It cannot where a tool call begins, because the call's name comes first.
        """
        if channel is not self.channel:
            if channel is TOOL_CALL:  # the call's number comes with its name
                return False
            self._change(channel)
        self._answer.think(channel is REASONING)
        return True

    def switch_to(self, channel: Channel) -> None:
        """Switch to the channel that follows a tag, which the core has found and removed without a piece."""
        self._at, self.malformed = channel, None
        self.enter(channel)

    def release(self) -> None:
        """End the text: emit what is held back, or remove it if it is white space next to markup.

        Held white space may complete a stop string.
        """
        self._send_space(anywhere=False)
        if self._searches and self._answer.matched is not None:
            self.stopped = True
        elif self._searches and self._answer.stop_begun:
            self._send(None)

    def _send_space(self, *, anywhere: bool) -> None:
        """Emit the white space that is held at the start of a block; behind markup only if `anywhere`, else remove it."""
        if self._answer.end_block(anywhere):
            self._send("")

    def _change(self, channel: Channel, call: int = 0) -> None:
        """Begin a block of text on another channel, or another call."""
        self._answer.begin_block()
        self.enter(channel, call)

    def _send(self, text: str | None) -> None:
        """Pass text through the matcher of stop strings, and emit what is final; None flushes the matcher."""
        text, ids = self._answer.send(text)
        if text:
            self.emit(text, ids)

    def _cut_out(self, source: str, after: Channel) -> None:
        """Remove markup from the output. Its ids go to the next delta.

        Args:
            source: The markup.
            after: The channel of the text behind it.

        """
        self._answer.drop(source)

    def _emit_event(self, piece: Piece) -> None:
        """Emit a delta for a piece of a tool call that is not plain text: a name, completion, failure or converted text."""
        said = piece.call, piece.complete, piece.malformed
        call_id = self._call_ids() if piece.name and self._call_ids is not None else ""
        ids = self._answer.take(piece.source)
        text = piece.text.translate(self._back) if self._back else piece.text
        self.out.append(ToolCallDelta(piece.name, text, ids, self._index, *said, id=call_id))

    def _reason(self, reason: str) -> str:
        """Return a reason with the first characters of tags, which may be escaped in it."""
        for code, first in self._back.items():
            reason = reason.replace(f"\\U{code:08x}", first)
        return reason.translate(self._back)

    def emit(self, text: str, ids: list[int]) -> None:
        """Append a delta with final text on the current channel, and its ids; do nothing for empty text."""
        text = text.translate(self._back) if self._back else text
        if text and self.malformed is None:
            self.out.append(self.make(text, ids, self._index))
        elif text and self.channel is TOOL_CALL:
            self.out.append(ToolCallDelta("", text, ids, self._index, self._call, malformed=self.malformed))
        elif text:
            self.out.append(TextDelta(text, ids, self._index, self.malformed))

    def enter(self, channel: Channel, call: int = 0) -> None:
        """Switch to another channel; in the channel of tool calls, to the call with the number `call`."""
        self.channel, self._call = channel, call
        self._searches = channel in self._scope
        if channel is TOOL_CALL:
            self.make = partial(ToolCallDelta, "", call=call)
        else:
            self.make = ReasoningDelta if channel is REASONING else TextDelta
        self._answer.enter(self._searches, self._strip and channel is REASONING, channel is TOOL_CALL)


class ChunkRouter(Router):
    """Router whose output is chunks for the next stage, not deltas: text is cut wherever an id ends.

    Removed markup gives a chunk without text, which tells the next stage that the text is not contiguous there.
    """

    def __init__(
        self,
        answer: _core.AnswerText,
        channel: Channel,
        *,
        scope: frozenset[Channel] = frozenset(),
        strip: bool = False,
    ) -> None:
        """Start on a channel.

        Args:
            answer: Text with its ids. All text that was added to it must pass through this router.
            channel: The channel of the first text.
            scope: The channels on which stop strings count; empty without stop strings.
            strip: Drop the thinking.

        """
        super().__init__(answer, scope, strip, 0, channel)

    def pass_on(self, chunk: Chunk) -> None:
        """Emit the held text, and then `chunk`, which also gets the ids that are left over."""
        self.release()
        self.out.append(replace(chunk, ids=[*self._answer.finish(), *chunk.ids]))

    def take(self) -> list[Chunk]:
        """Return the finished chunks and clear the list."""
        out, self.out = self.out, []
        return out

    def take_all(self, channel: Channel) -> list[Chunk]:
        """Return the finished chunks and clear the list; ids that are left over come in a last chunk without text.

        Args:
            channel: The channel of that chunk.

        """
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

    def _emit_event(self, piece: Piece) -> None:
        ids = self._answer.take(piece.source)
        self.out.append(Chunk(ids, piece.text, TOOL_CALL, piece.name, piece.call, piece.complete, piece.malformed))
