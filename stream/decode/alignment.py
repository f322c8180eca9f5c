"""Which tokens go with a delta's text, and where that stands: made after the deltas, and only if somebody wants it.

Ids leave in the order in which they came, each in one delta. So what comes with an id waits in a queue, and a delta takes
as many items from it as it has ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import repeat

from msgspec.structs import replace

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.events import Alignment, Delta, Finish, TextDelta, ToolCallDelta

_Text = tuple[type, int]  # a channel, and the number of the call in it


class Aligner:
    """Gives each of an answer's deltas its `alignment`."""

    def __init__(self, tok: Tokenizer) -> None:
        self._tok = tok
        self._logprobs: deque[float | None] = deque()
        self._sent: dict[_Text, tuple[int, int]] = {}  # characters and bytes of each text that have gone out

    def copy(self) -> Aligner:
        """Return an independent copy."""
        other = Aligner(self._tok)
        other._logprobs, other._sent = self._logprobs.copy(), self._sent.copy()
        return other

    def add(self, count: int, logprobs: Sequence[float | None] | None) -> None:
        """Add what came with the next `count` ids; of more, only the first count."""
        listed = getattr(logprobs, "tolist", None)  # of an array, on any device
        self._logprobs.extend(repeat(None, count) if logprobs is None else (listed() if listed else logprobs)[:count])

    def align(self, delta: Delta) -> Delta:
        """Give the next delta its alignment."""
        key: _Text
        match delta:
            case ToolCallDelta():
                key, text = (ToolCallDelta, delta.call), delta.arguments
            case Finish():
                key, text = (TextDelta, 0), ""
            case _:
                key, text = (type(delta), 0), delta.text
        chars, size = self._sent.get(key, (0, 0))
        self._sent[key] = chars + len(text), size + len(text.encode())
        logprobs = [self._logprobs.popleft() for _ in delta.token_ids]
        token_bytes = [self._tok.token_bytes(token_id) for token_id in delta.token_ids]
        return replace(delta, alignment=Alignment(logprobs, token_bytes, chars, size))
