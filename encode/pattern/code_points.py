"""Sets of code points, stored as the sorted code points at which membership changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.unicode import categories

N_CODE_POINTS = 0x110000


@dataclass(frozen=True, eq=False)
class CodePoints:
    """A set of code points. All operations work on the bounds of ranges, not on single code points.

    `flips` are the sorted code points at which membership changes: [a, b, c, d] is the set a..b-1 and c..d-1.
    """

    flips: NDArray[np.int32]

    @staticmethod
    def from_ranges(ranges: Iterable[tuple[int, int]]) -> CodePoints:
        """Make the union of inclusive ranges, in any order; they may overlap."""
        bounds = np.array(sorted(ranges), np.int32).reshape(-1, 2)
        if not len(bounds):
            return CodePoints(np.empty(0, np.int32))
        ends = np.maximum.accumulate(bounds[:, 1]) + 1
        gaps = bounds[1:, 0] > ends[:-1]
        starts = bounds[:, 0][np.concatenate(([True], gaps))]
        return CodePoints(np.stack([starts, ends[np.concatenate((gaps, [True]))]], axis=1).ravel())

    @staticmethod
    def of(*code_points: int) -> CodePoints:
        """Make the set of these code points."""
        return CodePoints.from_ranges((c, c) for c in code_points)

    def contains(self, code_points: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return for each code point whether it is in the set."""
        before: NDArray[np.int64] = np.searchsorted(self.flips, code_points, side="right")
        return (before & 1).astype(np.bool_)

    def _combine(self, other: CodePoints, rule: Callable[..., NDArray[np.bool_]]) -> CodePoints:
        edges = np.union1d(self.flips, other.flips)
        inside = rule(self.contains(edges), other.contains(edges))
        return CodePoints(edges[inside != np.concatenate(([False], inside[:-1]))])

    def __or__(self, other: CodePoints) -> CodePoints:
        return self._combine(other, np.logical_or)

    def __and__(self, other: CodePoints) -> CodePoints:
        return self._combine(other, np.logical_and)

    def __invert__(self) -> CodePoints:
        return CodePoints(np.setxor1d(self.flips, np.array([0, N_CODE_POINTS], np.int32)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CodePoints) and np.array_equal(self.flips, other.flips)

    def __hash__(self) -> int:
        return hash(self.flips.tobytes())

    def __bool__(self) -> bool:
        return len(self.flips) > 0

    def folded(self) -> CodePoints:
        """Return the set with every code point that simple case folding makes equal to a member."""
        pairs = categories.fold_pairs()
        mates = pairs[self.contains(pairs[:, 0]), 1]
        return self | CodePoints.of(*mates.tolist())

    @property
    def has_case(self) -> bool:
        """Whether case folding, simple or full, concerns any member."""
        cased = CodePoints.from_ranges(categories.full_folds()) | CodePoints.of(*categories.fold_pairs()[:, 0].tolist())
        return bool(self & cased)

    @property
    def is_ascii(self) -> bool:
        """Whether every member is below U+0080."""
        return not len(self.flips) or int(self.flips[-1]) <= 0x80
