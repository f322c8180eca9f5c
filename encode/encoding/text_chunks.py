"""Truncation and chunking of texts by tokens: cuts are between characters, and each piece encodes to at most the given ids."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate
from operator import index
from typing import NamedTuple, Protocol, Unpack

from tokenweir.encode.base.options import EncodeOptions
from tokenweir.encode.values.encoded import Encoded, Side


class TextEncoder(Protocol):
    """The methods of `Tokenizer` that are needed here."""

    def encode(self, text: str, **options: Unpack[EncodeOptions]) -> list[int]: ...
    def encode_with_offsets(self, text: str, **options: Unpack[EncodeOptions]) -> Encoded: ...
    def count(self, text: str, **options: Unpack[EncodeOptions]) -> int: ...


class TextChunk(NamedTuple):
    """A piece of a text.

    Attributes:
        start: The index of its first character in the text.
        end: The index after its last character.
        ids: The ids of the piece encoded alone.

    """

    start: int
    end: int
    ids: list[int]


def truncate(tokenizer: TextEncoder, text: str, max_tokens: int, side: Side, **options: Unpack[EncodeOptions]) -> str:
    """Return a text truncated to at most `max_tokens` ids; see `Tokenizer.truncate`."""
    if side not in ("left", "right"):
        raise ValueError(f'side must be "left" or "right", not {side!r}')
    room = _room(tokenizer, max_tokens, options, least=0)
    if tokenizer.count(text, **options) <= max_tokens:
        return text
    cuts = _Cuts(tokenizer, text, options)
    if side == "right":
        ends = (cuts.ends[k] for k in range(room, 0, -1) if cuts.ends[k] <= cuts.starts[k])
        pieces = (text[:end] for end in ends)
    else:
        n = len(cuts.starts) - 1
        pieces = (text[cuts.starts[k] :] for k in range(n - room, n) if cuts.ends[k] <= cuts.starts[k])
    return next((piece for piece in pieces if tokenizer.count(piece, **options) <= max_tokens), "")


def chunks(
    tokenizer: TextEncoder, text: str, max_tokens: int, overlap: int, **options: Unpack[EncodeOptions]
) -> Iterator[TextChunk]:
    """Yield the chunks of a text, of at most `max_tokens` ids each; see `Tokenizer.chunks`."""
    room = _room(tokenizer, max_tokens, options, least=1)
    if not 0 <= index(overlap) < room:
        raise ValueError(f"overlap must be from 0 to {room - 1} for max_tokens={max_tokens}, not {overlap}")
    return _chunks(tokenizer, text, _Cuts(tokenizer, text, options), max_tokens, room, overlap, options)


def _chunks(
    tokenizer: TextEncoder, text: str, cuts: _Cuts, max_tokens: int, room: int, overlap: int, options: EncodeOptions
) -> Iterator[TextChunk]:
    start = end = 0
    while end < len(text):
        for begin in cuts.overlapping(start, end, overlap):
            chunk = _longest(tokenizer, text, begin, cuts.after(begin, room), max_tokens, options)
            if chunk.end > end:  # at the latest where nothing overlaps
                break
        yield chunk
        start, end = chunk.start, chunk.end


def _longest(
    tokenizer: TextEncoder, text: str, start: int, ends: list[int], max_tokens: int, options: EncodeOptions
) -> TextChunk:
    """Return the longest chunk that begins at `start`, ends at one of `ends`, and has at most `max_tokens` ids.

    If even the shortest one has more, the chunk ends at an earlier character. `ValueError` if the first character alone has
    more ids.
    """
    for end in (*reversed(ends), *range(ends[0] - 1, start, -1)):
        if len(ids := tokenizer.encode(text[start:end], **options)) <= max_tokens:
            return TextChunk(start, end, ids)
    raise ValueError(f"character {start}, {text[start]!r}, alone has {len(ids)} tokens, and max_tokens is {max_tokens}")


def _room(tokenizer: TextEncoder, max_tokens: int, options: EncodeOptions, least: int) -> int:
    """Return how many of `max_tokens` ids are left for the text itself, after those added to every text.

    `ValueError` if they are fewer than `least`.
    """
    added = tokenizer.count("", **options)
    if index(max_tokens) < added + least:
        raise ValueError(f"max_tokens must be at least {added + least}, not {max_tokens}")
    return max_tokens - added


class _Cuts:
    """The places where a text may be cut: between two tokens of the whole text, and never inside a character.

    Attributes:
        starts: For each token the least start of it and all later tokens, in characters; then the length of the text.
        ends: For each token the greatest end of all earlier tokens, in characters; then that of all tokens.

    """

    def __init__(self, tokenizer: TextEncoder, text: str, options: EncodeOptions) -> None:
        plain: EncodeOptions = {"parse_special": options.get("parse_special", True), "add_special_tokens": False}
        offsets = tokenizer.encode_with_offsets(text, **plain).offsets
        size = len(text)
        self.ends = [0, *accumulate((end for _, end in offsets), max)]
        backwards = accumulate((start for start, _ in reversed(offsets)), min, initial=size)
        self.starts = [*backwards][::-1]
        # Cuts are at starts of tokens, so text that no token covers, such as dropped white space, stays at the end of a chunk.
        at = range(1, len(offsets))
        self._places = [
            0,
            *dict.fromkeys(self.starts[k] for k in at if 0 < self.ends[k] <= self.starts[k] < size),
            size,
        ]
        first = {self.starts[k]: k for k in reversed(range(len(offsets)))}
        self._tokens = [0, *(first[place] for place in self._places[1:-1]), len(offsets)]

    def after(self, start: int, room: int) -> list[int]:
        """Return the places after `start`, ascending, that are at most `room` tokens away; the next one in any case."""
        here = bisect_right(self._places, start)
        first = self._tokens[here - 1]
        last = bisect_right(self._tokens, first + room)
        return self._places[here : max(last, here + 1)]

    def overlapping(self, start: int, end: int, overlap: int) -> Iterator[int]:
        """Yield the places where the chunk after [start, end) may begin, the earliest first and `end` last."""
        if overlap:
            here = bisect_left(self._places, end)
            token = self._tokens[min(here, len(self._tokens) - 1)]
            first = max(bisect_left(self._tokens, token - overlap), bisect_right(self._places, start))
            yield from self._places[first:here]
        yield end
