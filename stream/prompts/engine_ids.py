"""Ids of engines among canonical ones, stored by what differs."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STRETCH_BYTES = 512
"""Bytes that a stretch costs besides its ids."""


class Kept(NamedTuple):
    """Ids of a prompt that are those of an engine: `[start, end)`, in the message of this number."""

    start: int
    end: int
    message: int


class EngineIds(NamedTuple):
    """Stretches of a prompt's ids that an engine gave. All other ids are those of the prompt's tape.

    Attributes:
        kept: The stretches, ascending.
        seams: For each stretch the number of ids directly before it that are not the tape's: an engine's prompt ended there, and
            the template's next text joins its last ids.
        behind: For each stretch the number of the tape's ids before what follows it.
        own: The ids of all stretches, each with its seam.
        flags: For each id of the stretches 1 (an engine sampled it) or 2 (it was inferred from an engine's text).
        identities: For each stretch the message as it was delivered, as `fingerprint` gives it.

    """

    kept: tuple[Kept, ...] = ()
    seams: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    own: NDArray[np.int32] = np.zeros(0, np.int32)
    flags: NDArray[np.uint8] = np.zeros(0, np.uint8)
    identities: tuple[bytes, ...] = ()

    @property
    def memory(self) -> int:
        """Bytes of memory."""
        return self.own.nbytes + self.flags.nbytes + STRETCH_BYTES * len(self.kept)

    def over(self, canonical: NDArray[np.int32], *more: NDArray[np.int32], first: int = 0) -> NDArray[np.int32]:
        """Return the ids of a prompt: the tape's, with the engine's in place of those of each stretch.

        Args:
            canonical: The ids of the tape.
            more: Ids to append.
            first: The number of ids to leave out at the beginning.

        """
        number = bisect_right(self.kept, first, key=lambda kept: kept.end)  # stretches that are left out
        end, place = (self.kept[number - 1].end, self.behind[number - 1]) if number else (0, 0)
        if number == len(self.kept):
            return np.concatenate([canonical[place + first - end :], *more])
        pieces, begin, taken = [], end, len(self.own)
        taken -= sum(kept.end - kept.start for kept in self.kept[number:]) + sum(self.seams[number:])
        for i in range(number, len(self.kept)):
            kept = self.kept[i]
            start = kept.start - self.seams[i]
            pieces += [canonical[place : place + start - end], self.own[taken : taken + kept.end - start]]
            taken += kept.end - start
            end, place = kept.end, self.behind[i]
        found: NDArray[np.int32] = np.concatenate([*pieces, canonical[place:], *more])
        return found[first - begin :]

    def sampled(self, size: int) -> NDArray[np.uint8]:
        """Return for each of so many ids 0, 1 (an engine sampled it) or 2 (inferred)."""
        found, taken = np.zeros(size, np.uint8), 0
        for start, end, _ in self.kept:
            found[start:end] = self.flags[taken : taken + end - start]
            taken += end - start
        return found

    def place(self, number: int) -> int:
        """Return how many of the tape's ids come before a stretch and its seam."""
        end, behind = (self.kept[number - 1].end, self.behind[number - 1]) if number else (0, 0)
        return behind + self.kept[number].start - self.seams[number] - end

    def with_one(
        self, kept: Kept, seam: int, behind: int, own: NDArray[np.int32], flags: NDArray[np.uint8], identity: bytes
    ) -> EngineIds:
        """Return the stretches and one behind them; arguments as the attributes."""
        return EngineIds(
            (*self.kept, kept),
            (*self.seams, seam),
            (*self.behind, behind),
            np.concatenate([self.own, own]),
            np.concatenate([self.flags, flags]),
            (*self.identities, identity),
        )

    def first(self, count: int) -> EngineIds:
        """Return the first stretches."""
        if count == len(self.kept):
            return self
        sizes = [end - start for start, end, _ in self.kept[:count]]
        return EngineIds(
            self.kept[:count],
            self.seams[:count],
            self.behind[:count],
            self.own[: sum(sizes) + sum(self.seams[:count])].copy(),
            self.flags[: sum(sizes)].copy(),
            self.identities[:count],
        )

    def cut(self, end: int, behind: int) -> EngineIds:
        """Return the stretches with the last one cut.

        Args:
            end: The end of its ids.
            behind: The number of the tape's ids before what follows.

        """
        gone = self.kept[-1].end - end
        return self._replace(
            kept=(*self.kept[:-1], self.kept[-1]._replace(end=end)),
            behind=(*self.behind[:-1], behind),
            own=self.own[: len(self.own) - gone].copy(),
            flags=self.flags[: len(self.flags) - gone].copy(),
        )


class KeptIds(NamedTuple):
    """The ids of a prompt that keeps those of answers.

    Attributes:
        ids: All ids.
        engine_ids: Those of engines.
        reason: Why the last answer is not kept as a whole; empty if it is.
        is_spelled: The ids have the bytes of the prompt's text.

    """

    ids: NDArray[np.int32]
    engine_ids: EngineIds
    reason: str
    is_spelled: bool
