"""Chunks between stages: pieces of text with their ids.

An id belongs to the piece with the last byte of its text. An id without text (an end token, a skipped token, part of a
character, part of a tag) joins the next character that is emitted. So every id is in exactly one chunk, and the chunk
depends on the ids and the text alone, not on how they were cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from tokenweir.encode.errors import EngineError
from tokenweir.stream.events.deltas import Channel
from tokenweir.stream.events.step import EngineStep

IdOrIds = int | Sequence[int] | NDArray[Any]


class Chunk(Struct, frozen=True, gc=False):
    """A piece of text, with its ids, that one stage of the decoding passes to the next.

    Attributes:
        ids: The ids whose text ends at the end of `text`, and those before them that have no text.
        text: Whole characters; empty for markup, for events without text, and for trailing ids.
        channel: The channel of the text.
        name: The function's name, in the first chunk of a tool call; empty in all others.
        call: The number of the tool call in the answer, from 0.
        complete: The call is complete.
        malformed: Why the text, which began as a tool call, is not one; None for any other text.

    """

    ids: Sequence[int]
    text: str
    channel: Channel = Channel.ANSWER
    name: str = ""
    call: int = 0
    complete: bool = False
    malformed: str | None = None


_NO_IDS = (str, bytes, bytearray, bool, float, set, frozenset, dict)
"""Types with items, or that count as numbers, and are nevertheless refused as ids."""


class FeedError(TypeError, ValueError):
    """Error for ids or logprobs that a decoder cannot take.

    Args:
        message: The message, for a caller who passed them.
        yielded: The message of `engine_error`.

    Attributes:
        engine_error: The `EngineError` to raise in its place if an engine yielded them.

    """

    def __init__(self, message: str, yielded: str) -> None:
        super().__init__(message)
        self.engine_error = EngineError(yielded)


def engine_ids(item: IdOrIds | EngineStep) -> list[int]:
    """Convert an item that an engine yielded into a list of ids; raise `EngineError` if that is not possible."""
    try:
        return id_list(item)
    except FeedError as error:
        raise error.engine_error from None


def id_list(item: IdOrIds | EngineStep) -> list[int]:
    """Convert an item that may be fed to a decoder into a list of ids.

    Args:
        item: An id, a sequence or one-dimensional array of ids on any device, or an `EngineStep` of either.

    Raises:
        FeedError: The item has another type; the message names it.

    """
    if type(item) is int:
        return [item]
    ids: Any = item.ids if isinstance(item, EngineStep) else item
    if hasattr(ids, "tolist"):  # NumPy, CuPy and PyTorch, on any device
        ids = ids.tolist()
    if not isinstance(ids, _NO_IDS):
        try:
            if hasattr(ids, "__index__"):
                return [index(ids)]
            if hasattr(ids, "__len__"):  # an iterator may be infinite
                return [to_id(token_id) for token_id in ids]
        except TypeError:
            pass
    value = repr(item)
    shown = f"{type(item).__name__} {value if len(value) <= 80 else value[:77] + '...'}"
    raise FeedError(
        f"ids must be a token id or a sequence of ids, not {shown}",
        f"the engine yielded {shown}, not a token id, a sequence of ids or an EngineStep",
    )


def to_id(token_id: Any) -> int:
    """Convert an item of a list of ids into an int; raise `TypeError` if it is not an integer."""
    if token_id is True or token_id is False:
        raise TypeError("a bool is not a token id")
    return index(token_id)
