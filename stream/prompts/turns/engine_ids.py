"""Ids that engines generated within the ids of a prompt, stored as differences from the canonical ids of its text."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

STRETCH_BYTES = 512
"""Bytes that a stretch costs besides its ids."""


class Kept(NamedTuple):
    """A stretch of a prompt's ids that an engine generated.

    Attributes:
        start: The index of its first id.
        end: The index behind its last id.
        message: The number of the message whose answer it is.

    """

    start: int
    end: int
    message: int


class EngineIds(NamedTuple):
    """Stretches of a prompt's ids that an engine generated.

    All other ids of the prompt are canonical: those that its tape (`_core.Tape`) has, from encoding the prompt's text.

    Attributes:
        kept: The stretches, ascending; their indices are those of the prompt's ids.
        overridden_before: For each stretch the number of ids directly before it that come from the engine's prompt and
            are not the tape's. The tape may have other ids there, because it encodes the end of that prompt together
            with the next text.
        resume_indices: For each stretch the index in the tape's ids at which the prompt's ids go on behind it.
        own: The ids of all stretches, each preceded by the ids that `overridden_before` counts.
        flags: For each id of the stretches alone, 1 (an engine sampled it) or 2 (it was inferred from an
            engine's text).
        identities: For each stretch the `fingerprint` of the message as it was delivered.

    """

    kept: tuple[Kept, ...] = ()
    overridden_before: tuple[int, ...] = ()
    resume_indices: tuple[int, ...] = ()
    own: NDArray[np.int32] = np.zeros(0, np.int32)
    flags: NDArray[np.uint8] = np.zeros(0, np.uint8)
    identities: tuple[bytes, ...] = ()

    @property
    def memory(self) -> int:
        """Bytes of memory that the object takes, by estimate."""
        return self.own.nbytes + self.flags.nbytes + STRETCH_BYTES * len(self.kept)

    def over(self, canonical: NDArray[np.int32], *more: NDArray[np.int32], first: int = 0) -> NDArray[np.int32]:
        """Return the ids of a prompt: the tape's, with the engine's ids put in at each stretch and directly before it.

        Args:
            canonical: The ids of the tape.
            more: Arrays of ids to append.
            first: The number of ids to leave out at the beginning of the result.

        """
        number = bisect_right(self.kept, first, key=lambda kept: kept.end)  # stretches that are left out
        end, place = (self.kept[number - 1].end, self.resume_indices[number - 1]) if number else (0, 0)
        if number == len(self.kept):
            return np.concatenate([canonical[place + first - end :], *more])
        pieces, begin, taken = [], end, len(self.own)
        taken -= sum(kept.end - kept.start for kept in self.kept[number:]) + sum(self.overridden_before[number:])
        for i in range(number, len(self.kept)):
            kept = self.kept[i]
            start = kept.start - self.overridden_before[i]
            pieces += [canonical[place : place + start - end], self.own[taken : taken + kept.end - start]]
            taken += kept.end - start
            end, place = kept.end, self.resume_indices[i]
        found: NDArray[np.int32] = np.concatenate([*pieces, canonical[place:], *more])
        return found[first - begin :]

    def sampled(self, size: int) -> NDArray[np.uint8]:
        """Return uint8[size], for each id of a prompt of `size` ids the source of the id.

        0: the template or a client; 1: an engine sampled it; 2: it was inferred from an engine's text.
        """
        found, taken = np.zeros(size, np.uint8), 0
        for start, end, _ in self.kept:
            found[start:end] = self.flags[taken : taken + end - start]
            taken += end - start
        return found

    def place(self, number: int) -> int:
        """Return the index in the tape's ids at which stretch `number` begins, its overridden ids included."""
        end, resume_index = (self.kept[number - 1].end, self.resume_indices[number - 1]) if number else (0, 0)
        return resume_index + self.kept[number].start - self.overridden_before[number] - end

    def with_one(
        self,
        kept: Kept,
        overridden: int,
        resume_index: int,
        own: NDArray[np.int32],
        flags: NDArray[np.uint8],
        identity: bytes,
    ) -> EngineIds:
        """Return a copy with one stretch appended; each argument is an item or a part of the attribute of that name."""
        return EngineIds(
            (*self.kept, kept),
            (*self.overridden_before, overridden),
            (*self.resume_indices, resume_index),
            np.concatenate([self.own, own]),
            np.concatenate([self.flags, flags]),
            (*self.identities, identity),
        )

    def first(self, count: int) -> EngineIds:
        """Return a copy with the first `count` stretches only."""
        if count == len(self.kept):
            return self
        sizes = [end - start for start, end, _ in self.kept[:count]]
        return EngineIds(
            self.kept[:count],
            self.overridden_before[:count],
            self.resume_indices[:count],
            self.own[: sum(sizes) + sum(self.overridden_before[:count])].copy(),
            self.flags[: sum(sizes)].copy(),
            self.identities[:count],
        )

    def cut(self, end: int, resume_index: int) -> EngineIds:
        """Return a copy whose last stretch is shortened to end before id `end` of the prompt.

        Args:
            end: The new end of the stretch.
            resume_index: The new last item of the attribute `resume_indices`.

        """
        gone = self.kept[-1].end - end
        return self._replace(
            kept=(*self.kept[:-1], self.kept[-1]._replace(end=end)),
            resume_indices=(*self.resume_indices[:-1], resume_index),
            own=self.own[: len(self.own) - gone].copy(),
            flags=self.flags[: len(self.flags) - gone].copy(),
        )


class KeptIds(NamedTuple):
    """The ids of a prompt in which answers have the ids that an engine generated.

    Attributes:
        ids: All ids of the prompt.
        engine_ids: The stretches of `ids` that engines generated.
        reason: Why the last answer is not kept as a whole, as `Difference.reason` has it; empty if it is kept as a whole.
        is_spelled: Whether the ids up to the end of the last stretch decode to the bytes of the prompt's text.

    """

    ids: NDArray[np.int32]
    engine_ids: EngineIds
    reason: str
    is_spelled: bool
