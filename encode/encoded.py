"""What encoding returns besides a plain list of ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Side = Literal["left", "right"]


def checked_width(length: int | None, *sides: str) -> int | None:
    """The `length` of `padded`; refuses what `length` and sides cannot be."""
    for name, value in zip(("side", "truncation_side"), sides, strict=True):
        if value not in ("left", "right"):
            raise ValueError(f'{name} must be "left" or "right", not {value!r}')
    if length is not None and length < 0:
        raise ValueError(f"length must be at least 0, not {length}")
    return length


class Encoded(NamedTuple):
    """Ids and where they come from.

    Attributes:
        ids: Token ids.
        offsets: For each id the (start, end) characters of the text that it covers, whole characters always; (0, 0)
            for what the post-processor added.

    """

    ids: list[int]
    offsets: list[tuple[int, int]]


class Ragged:
    """The ids of many texts in one array.

    Attributes:
        ids: int32[total], all ids one after the other.
        offsets: int64[n + 1]; text i has `ids[offsets[i]:offsets[i + 1]]`.

    """

    __slots__ = ("ids", "offsets")

    def __init__(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        self.ids = ids
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[np.int32]:
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"text {index} of {n}")
        index %= n
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[i] for i in range(len(self)))

    def padded(
        self, pad_id: int, length: int | None = None, *, side: Side = "right", truncation_side: Side = "right"
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """A row for each text, all of one length.

        Args:
            pad_id: What fills rows up.
            length: Ids a row; None is the longest text's number.
            side: Where rows are filled up.
            truncation_side: Where texts that are too long are cut.

        Returns:
            The rows and a mask, 1 for an id of the text and 0 for filling; both int32[n, length].

        Raises:
            ValueError: `length` is below 0, or a side is neither "left" nor "right".

        """
        width = checked_width(length, side, truncation_side)
        sizes = np.diff(self.offsets)
        width = int(sizes.max(initial=0)) if width is None else width
        taken = np.minimum(sizes, width)
        begins = self.offsets[:-1] + (sizes - taken if truncation_side == "left" else 0)
        column = np.arange(width) - (width - taken[:, None] if side == "left" else 0)
        mask = (column >= 0) & (column < taken[:, None])
        rows = np.full((len(self), width), pad_id, np.int32)
        rows[mask] = self.ids[(begins[:, None] + column)[mask]]
        return rows, mask.astype(np.int32)

    def __repr__(self) -> str:
        return f"Ragged({len(self)} texts, {len(self.ids)} ids)"
