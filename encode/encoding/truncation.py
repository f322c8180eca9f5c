"""Truncation as HuggingFace's library does it: room is left for the ids that the post-processor adds."""

from __future__ import annotations

from operator import index
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.values.encoded import Ragged, Side, check_side, too_short

TruncationStrategy = Literal["longest_first", "only_first", "only_second"]

_STRATEGIES = ("longest_first", "only_first", "only_second")


class Truncation(NamedTuple):
    """A bound on the ids of a text, or of a pair of texts.

    Attributes:
        max_tokens: The most ids, including those that are added around the texts.
        side: The side on which texts are cut.
        strategy: The text of a pair that is cut, as for `lengths_after_truncation`.

    """

    max_tokens: int
    side: Side = "right"
    strategy: TruncationStrategy = "longest_first"

    def room(self, n_added: int) -> int:
        """Return the most ids that the texts themselves may have.

        Raises:
            ValueError: `max_tokens` is less than `n_added`, the number of ids that are added around the texts.

        """
        if self.max_tokens < n_added:
            raise too_short("max_tokens", self.max_tokens, n_added)
        return self.max_tokens - n_added

    def kept(self, n: int, length: int) -> slice:
        """Return the places of the ids that remain when `n` ids are cut to `length`."""
        return slice(n - length, n) if self.side == "left" and length < n else slice(0, length)


def truncation_of(
    max_tokens: int | None, side: Side, strategy: TruncationStrategy = "longest_first"
) -> Truncation | None:
    """Check the arguments of an encoding method; return None if nothing is truncated.

    Raises:
        TypeError: `max_tokens` is not an integer.
        ValueError: `max_tokens` is negative, or the side or the strategy is unknown.

    """
    check_side("truncation_side", side)
    if strategy not in _STRATEGIES:
        raise ValueError(f"truncation must be one of {', '.join(_STRATEGIES)}, not {strategy!r:.80}")
    if max_tokens is None:
        return None
    if isinstance(max_tokens, bool) or not hasattr(max_tokens, "__index__"):
        raise TypeError(f"max_tokens must be int, not {max_tokens!r:.80}")
    if index(max_tokens) < 0:
        raise ValueError(f"max_tokens must be at least 0, not {max_tokens}")
    return Truncation(index(max_tokens), side, strategy)


def lengths_after_truncation(
    first: int, second: int | None, max_length: int, strategy: TruncationStrategy = "longest_first"
) -> tuple[int, int]:
    """Return the lengths to which a sequence, and its pair, are truncated to have `max_length` tokens together.

    Args:
        first: The number of tokens of the first sequence.
        second: The number of tokens of the second one; None without a pair.
        max_length: The most tokens of both together.
        strategy: The sequence to shorten: "only_first", "only_second", or "longest_first" for the longer one, and then
            both alike.

    Raises:
        ValueError: The sequence that the strategy names is missing, or too short.

    """
    total = first + (second or 0)
    surplus = total - index(max_length)
    if max_length == 0:
        return 0, 0
    if surplus <= 0:
        return first, second or 0
    if strategy != "longest_first":
        if strategy == "only_second" and second is None:
            raise ValueError("Truncation error: Second sequence not provided")
        target = first if strategy == "only_first" else second or 0
        if target <= surplus:
            raise ValueError("Truncation error: Sequence to truncate too short to respect the provided max_length")
        return (target - surplus, second or 0) if strategy == "only_first" else (first, target - surplus)
    if second is None:
        return max_length, 0
    short, long = sorted((first, second))
    long = short if short > max_length else max(short, max_length - short)
    if short + long > max_length:
        short = max_length // 2
        long = short + max_length % 2
    return (long, short) if first > second else (short, long)


Called = list[tuple[int, str]]
"""The (index, name) of ids whose token is named by the text that it took."""


def cut_rows(
    rows: Ragged, truncation: Truncation, spans: NDArray[np.int64] | None, called: Called
) -> tuple[Ragged, NDArray[np.int64] | None, Called]:
    """Truncate rows, which keep the ids that were added to them; return them, and what belongs to the ids that remain.

    Args:
        rows: The rows; `added` is known.
        truncation: The bound of each row.
        spans: The characters of each id; None if they are not wanted.
        called: As in `Called`.

    """
    sizes = np.diff(rows.offsets)
    taken = np.minimum(sizes, truncation.max_tokens)
    if (taken == sizes).all() or rows.added is None:
        return rows, spans, called
    before, after = rows.added
    column = np.arange(len(rows.ids)) - np.repeat(rows.offsets[:-1], sizes)
    begins = np.repeat(np.full_like(taken, before) if truncation.side == "left" else taken - after, sizes)
    kept = (column < begins) | (column >= begins + np.repeat(sizes - taken, sizes))
    places = np.cumsum(kept) - 1
    cut = Ragged(rows.ids[kept], np.concatenate([[0], np.cumsum(taken)]), added=rows.added)
    return cut, None if spans is None else spans[kept], [(int(places[i]), text) for i, text in called if kept[i]]
