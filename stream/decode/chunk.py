"""What travels between stages: pieces of text with the ids that they came from.

An id belongs to the piece with the last byte of its text. One that has no text of its own (an end token, a skipped
one, part of a character, part of a tag) rides with the next character that goes out. So every id travels exactly once,
and where it travels depends on the ids and the text alone, not on how they were cut.
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

Ids = int | Sequence[int] | NDArray[Any]


class Chunk(Struct, frozen=True, gc=False):
    """A piece of text on its way through the stages.

    Attributes:
        ids: The ids whose last byte is the last of `text`, and those before them that have no text.
        text: Whole characters; empty for markup, for what only says something, and for ids that no text is left for.
        channel: What the text belongs to.
        name: As in `Piece`, and so are the fields after it.
        call: Which tool call it belongs to.
        complete: That call is whole.
        malformed: Why the text is no tool call after all.

    """

    ids: Sequence[int]
    text: str
    channel: Channel = Channel.ANSWER
    name: str = ""
    call: int = 0
    complete: bool = False
    malformed: str | None = None


_NO_IDS = (str, bytes, bytearray, bool, float, set, frozenset, dict)
"""What has items, or counts as a number, and is no ids all the same."""


def id_list(item: Ids | EngineStep) -> list[int]:
    """Turn what an engine yields into a list of ids.

    Args:
        item: An id, a sequence or one-dimensional array of ids on any device, or an `EngineStep` of either.

    Raises:
        EngineError: It is something else; the message names it.

    """
    if type(item) is int:
        return [item]
    ids: Any = item.ids if isinstance(item, EngineStep) else item
    if hasattr(ids, "tolist"):  # NumPy, CuPy and PyTorch, from whatever device
        ids = ids.tolist()
    if not isinstance(ids, _NO_IDS):
        try:
            if hasattr(ids, "__index__"):
                return [index(ids)]
            if hasattr(ids, "__len__"):  # an iterator may have no end
                return [to_id(token_id) for token_id in ids]
        except TypeError:
            pass
    value = repr(item)
    shown = value if len(value) <= 80 else value[:77] + "..."
    raise EngineError(
        f"the engine yielded {type(item).__name__} {shown}, not a token id, a sequence of ids or an EngineStep"
    )


def to_id(token_id: Any) -> int:
    """Turn an item of a list of ids into an int.

    Raises:
        TypeError: It is no integer.

    """
    if token_id is True or token_id is False:
        raise TypeError("a bool is not a token id")
    return index(token_id)
