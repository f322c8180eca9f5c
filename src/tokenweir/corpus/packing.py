"""Documents one behind the other in sequences of one length, for training."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.corpus.documents import DocumentBatch
from tokenweir.encode.values.encoded import Ragged


class Sequences(NamedTuple):
    """Rows of ids, which are documents or packed sequences.

    Attributes:
        ids: The ids of each row.
        mask: uint8 for each id; None without loss masks.
        positions: int32 for each id, its place in the part of the document that is in its row; None for documents.
        boundaries: For each row, where these parts begin in it, and its length; None for documents.

    """

    ids: Ragged
    mask: NDArray[np.uint8] | None
    positions: NDArray[np.int32] | None = None
    boundaries: Ragged | None = None


class Packer:
    """Packs a shard's documents, in order and without gaps; a document that does not fit continues in the next sequence."""

    def __init__(self, length: int) -> None:
        """Start with the first sequence of a shard, whose last one may be shorter than `length`."""
        self._length = length
        self._ids, self._mask = np.zeros(0, np.int32), np.zeros(0, np.uint8)
        self._begins = np.zeros(0, np.int64)  # of the documents that wait

    def add(self, batch: DocumentBatch) -> Sequences:
        """Return the sequences that these documents make full."""
        begins = batch.ids.offsets[:-1] + len(self._ids)
        self._begins = np.concatenate([self._begins, begins])
        self._ids = np.concatenate([self._ids, batch.ids.ids])
        if batch.mask is not None:
            self._mask = np.concatenate([self._mask, batch.mask])
        return self._take(len(self._ids) // self._length * self._length)

    def flush(self) -> Sequences:
        """Return the last sequence, if any ids are left."""
        return self._take(len(self._ids))

    def _take(self, size: int) -> Sequences:
        ids, mask = self._ids[:size], self._mask[:size] if len(self._mask) else None
        rows = np.append(np.arange(0, size, self._length), size) if size else np.zeros(1, np.int64)
        begins = np.unique(np.concatenate([self._begins[self._begins < size], rows[:-1]]))
        positions = np.arange(size) - np.repeat(begins, np.diff(begins, append=size))
        firsts = np.searchsorted(begins, rows)  # the first begin of each row, to which each row adds its length
        row_of = np.repeat(np.arange(len(rows) - 1), np.diff(firsts))
        within = np.insert(begins - rows[row_of], firsts[1:], np.diff(rows))
        self._ids, self._mask = self._ids[size:], self._mask[size:]
        self._begins = self._begins[self._begins >= size] - size
        return Sequences(
            Ragged(ids, rows),
            mask,
            positions.astype(np.int32),
            Ragged(within.astype(np.int32), firsts + np.arange(len(firsts))),
        )
