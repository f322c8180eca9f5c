"""What encoding returns besides a plain list of ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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

    def __repr__(self) -> str:
        return f"Ragged({len(self)} texts, {len(self.ids)} ids)"
