"""Pieces of generated text, as splitters make them."""

from __future__ import annotations

from msgspec import Struct

from tokenweir.stream.events.deltas import Channel

ANSWER, REASONING, TOOL_CALL = Channel  # faster than looking up members of the enum

CUT_SHORT = "the answer ends inside a tool call"


class Piece(Struct, frozen=True, gc=False):
    """A span of generated text, and the text emitted for it.

    Attributes:
        source: The span. The joined sources of all pieces are the text; a piece that only reports an event has none.
        channel: The channel; None for markup, which is removed.
        text: The emitted text: the span itself in the answer and the thinking, JSON text of the arguments in a call.
        name: The function's name, in the first piece of a call.
        call: The number of the call in the answer, from 0.
        complete: The call's JSON is complete. The last piece of a call, without text.
        malformed: Why this is not a call after all. In the answer, the piece is markup that is emitted as text. In a
            call whose name has been emitted, the call has broken off: its further pieces have the model's text
            unchanged.

    """

    source: str
    channel: Channel | None
    text: str
    name: str = ""
    call: int = 0
    complete: bool = False
    malformed: str | None = None


def plain(text: str, channel: Channel) -> Piece:
    """Return a piece for text that is emitted unchanged on `channel`."""
    return Piece(text, channel, text)


def markup(text: str) -> Piece:
    """Return a piece for text that is removed from the output."""
    return Piece(text, None, "")
