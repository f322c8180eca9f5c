"""Alignment of tokens with a delta's text: logprobs and offsets, added after the deltas are made, on request.

Ids leave in the order in which they came, each in one delta. So logprobs wait in a queue, and each delta takes as
many as it has ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chunk import FeedError
from tokenweir.stream.decode.parsers.pieces import ANSWER, REASONING, TOOL_CALL
from tokenweir.stream.decode.parsers.saved import CallNumber, Count, check_restored
from tokenweir.stream.events.deltas import (
    Alignment,
    Channel,
    Delta,
    Finish,
    ReasoningDelta,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
)

Candidates = Sequence[tuple[int, float]]
"""Ids that could have been generated, with their logprobs."""

_Sent = tuple[CallNumber, Count, Count]  # the call's number; its characters and bytes emitted so far
_State = tuple[list[float | None], dict[Channel, _Sent], list[list[tuple[Annotated[int, Meta(ge=0)], float]]] | None]


class Aligner:
    """Queue of logprobs, and counters of characters and bytes, that give each delta of an answer its `alignment`."""

    def __init__(self, tok: Tokenizer) -> None:
        self._tok = tok
        self._tops: deque[Candidates] | None = None  # one for each logprob, from the first on; None without any
        self._logprobs: deque[float | None] = deque()
        self._sent: dict[Channel, _Sent] = {}  # by channel
        self._in_text: list[bool] = []  # of the ids of the deltas that are aligned next

    def copy(self) -> Aligner:
        other = Aligner(self._tok)
        other._logprobs, other._sent = self._logprobs.copy(), self._sent.copy()
        other._tops = None if self._tops is None else self._tops.copy()
        return other

    def state(self) -> Any:
        return [list(self._logprobs), dict(self._sent), None if self._tops is None else list(self._tops)]

    def restore(self, state: Any) -> None:
        """Restore a state that `state` has returned; raise `ValueError` for an invalid one."""
        logprobs, self._sent, tops = msgspec.convert(state, _State)
        size = self._tok.vocab_size
        check_restored(tops is None or len(tops) == len(logprobs), "other candidates wait than ids")
        known = all(token_id < size for top in tops or () for token_id, _ in top)
        check_restored(known, "a candidate has an id outside of the vocabulary")
        self._logprobs, self._tops = deque(logprobs), None if tops is None else deque(tops)

    @property
    def waiting(self) -> int:
        """Number of ids that were added and are not in a delta yet."""
        return len(self._logprobs)

    def add(
        self, count: int, logprobs: Sequence[float | None] | None, tops: Sequence[Candidates] | None = None
    ) -> None:
        """Queue the logprobs of the next ids, until `align` gives them to a delta.

        Args:
            count: The number of ids. Entries of the other arguments beyond it are ignored.
            logprobs: One logprob or None for each id; None if the engine gave no logprobs.
            tops: The likeliest tokens in place of each id, each an id with its logprob; None if the engine gave no such
                lists.

        """
        if tops is not None and self._tops is None:
            self._tops = deque([] for _ in self._logprobs)
        if self._tops is not None:
            self._tops.extend(repeat([], count) if tops is None else tops[:count])
        listed = getattr(logprobs, "tolist", None)  # an array, on any device
        self._logprobs.extend(repeat(None, count) if logprobs is None else (listed() if listed else logprobs)[:count])

    def mark(self, in_text: list[bool]) -> None:
        """Set for the ids of the deltas that `align` gets next whether each token's text is in its delta."""
        self._in_text = in_text[::-1]

    def align(self, delta: Delta) -> Delta:
        """Return a copy of the next delta of the answer, with its `alignment`; take its ids' logprobs from the queue."""
        call = 0
        match delta:
            case ToolCallDelta():
                channel, call, text = TOOL_CALL, delta.call, delta.arguments
            case Finish():
                channel, text = ANSWER, ""
            case TextDelta():
                channel, text = ANSWER, delta.text
            case ReasoningDelta():
                channel, text = REASONING, delta.text
        of, chars, size = self._sent.get(channel, (call, 0, 0))
        if of != call:
            chars = size = 0
        self._sent[channel] = call, chars + len(text), size + len(text.encode())
        logprobs = [self._logprobs.popleft() for _ in delta.token_ids]
        token_bytes = [self._tok.token_bytes(token_id) for token_id in delta.token_ids]
        tops = [] if self._tops is None else [self._candidates() for _ in delta.token_ids]
        in_text = [self._in_text.pop() for _ in delta.token_ids]
        return replace(delta, alignment=Alignment(logprobs, token_bytes, chars, size, tops, in_text))

    def _candidates(self) -> list[TokenLogprob]:
        assert self._tops is not None
        token_bytes = self._tok.token_bytes
        return [TokenLogprob(token_id, logprob, token_bytes(token_id)) for token_id, logprob in self._tops.popleft()]


def check_logprobs(logprobs: Sequence[float | None], count: int) -> None:
    """Raise `FeedError` unless `logprobs` is a sequence of `count` items, each a number or None."""
    if type(logprobs) is not list and (
        isinstance(logprobs, str | bytes | Mapping) or not hasattr(logprobs, "__getitem__")
    ):
        message = f"logprobs must be a sequence of float, not {type(logprobs).__name__} {logprobs!r:.80}"
        raise FeedError(message, message)
    if len(logprobs) != count:
        given = f"{len(logprobs)} logprobs with {count} ids"
        raise FeedError(f"there are {given}", f"the engine gave {given}")
    for place, logprob in enumerate(logprobs):
        if type(logprob) is not float and logprob is not None and not hasattr(logprob, "__float__"):
            message = f"logprobs[{place}] must be float, not {type(logprob).__name__} {logprob!r:.80}"
            raise FeedError(message, message)


def check_candidates(tops: Sequence[Candidates], count: int, vocab_size: int) -> None:
    """Raise unless `tops` has an entry for each of `count` ids, with no candidate outside the vocabulary.

    Raises:
        FeedError: The number of entries is not `count`.
        TokenIdError: A candidate's id is outside the vocabulary.

    """
    if len(tops) != count:
        given = f"{len(tops)} lists of candidates with {count} ids"
        raise FeedError(f"there are {given}", f"the engine gave {given}")
    for place, top in enumerate(tops):
        for token_id, _ in top:
            if not 0 <= token_id < vocab_size:
                raise TokenIdError(
                    f"top_logprobs[{place}]: token id {token_id} is outside the vocabulary (0 to {vocab_size - 1})"
                )
