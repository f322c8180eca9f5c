"""The common beginning of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any


def common_length(sequences: Sequence[Sequence[Any]]) -> int:
    """Return the length of the common prefix of all sequences."""
    return sum(
        1 for _ in takewhile(lambda items: all(item == items[0] for item in items), zip(*sequences, strict=False))
    )
