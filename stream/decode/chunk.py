"""What travels between stages: pieces of text with the ids that they came from.

An id belongs to the piece with the last byte of its text. One that has no text of its own (an end token, a skipped
one, part of a character, part of a tag) rides with the next character that goes out. So every id travels exactly once,
and where it travels depends on the ids and the text alone, not on how they were cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from operator import index
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from tokenweir.encode.errors import EngineError
from tokenweir.stream.engines.protocol import EngineStep
from tokenweir.stream.events import Channel

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


class PendingIds:
    """Ids whose text has not gone out, each with the position in the text where it ends.

    Attributes:
        end: The position up to which ids have been added.
        sent: The position up to which they have been taken.

    """

    __slots__ = ("_queue", "end", "sent")

    def __init__(self) -> None:
        self._queue: deque[tuple[int, int]] = deque()
        self.end = self.sent = 0

    def __bool__(self) -> bool:
        return bool(self._queue)

    def copy(self) -> PendingIds:
        """Return an independent copy."""
        other = PendingIds()
        other._queue = self._queue.copy()
        other.end, other.sent = self.end, self.sent
        return other

    def add(self, ids: Iterable[int], length: int, *, whole: bool = True) -> None:
        """Add ids that end with the next `length` characters.

        Args:
            ids: One or more ids.
            length: The characters that came with them. If there are none, the ids ride with the character after.
            whole: False if the last of their bytes are the beginning of the character after.

        """
        self.end += length
        position = self.end if length and whole else self.end + 1
        for token_id in ids:
            self._queue.append((token_id, position))

    def take(self, length: int) -> list[int]:
        """Take the ids that end within the next `length` characters."""
        self.sent += length
        queue, ids = self._queue, []
        while queue and queue[0][1] <= self.sent:
            ids.append(queue.popleft()[0])
        return ids

    def rest(self) -> list[int]:
        """Take all that are left."""
        ids = [token_id for token_id, _ in self._queue]
        self._queue.clear()
        return ids

    def cut(self, text: str) -> Iterator[tuple[list[int], str]]:
        """Take `text` and its ids in pieces, one for each place in it where ids end."""
        done, start = 0, self.sent
        while self._queue and self._queue[0][1] <= start + len(text):
            end = self._queue[0][1] - start
            yield self.take(end - done), text[done:end]
            done = end
        if done < len(text):
            yield self.take(len(text) - done), text[done:]


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
    if not isinstance(ids, str | bytes | bytearray | bool | float):
        try:
            return [index(ids)] if hasattr(ids, "__index__") else [to_id(token_id) for token_id in ids]
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
