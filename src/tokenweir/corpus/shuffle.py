"""Documents of one shard in random order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tokenweir.corpus.documents import DocumentBatch
from tokenweir.encode.values.encoded import Ragged

BATCH_DOCUMENTS = 1 << 12
"""Documents of a batch."""


def shuffled(batches: Sequence[DocumentBatch], seed: tuple[int, int]) -> Iterator[DocumentBatch]:
    """Yield the documents of all batches in a random order that depends on a seed, in batches of `BATCH_DOCUMENTS`.

    The first batch has the number of skipped rows of all.
    """
    whole = _joined(batches)
    order = np.random.default_rng(seed).permutation(len(whole.ids))
    skipped = whole.skipped
    for start in range(0, len(order), BATCH_DOCUMENTS):
        yield _taken(whole, order[start : start + BATCH_DOCUMENTS])._replace(skipped=skipped)
        skipped = 0
    if not len(order):
        yield whole


def _joined(batches: Sequence[DocumentBatch]) -> DocumentBatch:
    sizes = np.concatenate([np.zeros(1, np.int64), *(np.diff(batch.ids.offsets) for batch in batches)])
    ids = np.concatenate([np.zeros(0, np.int32), *(batch.ids.ids for batch in batches)])
    masks = [batch.mask for batch in batches if batch.mask is not None]
    kept = {}
    for name in batches[0].kept if batches else ():
        import pyarrow

        kept[name] = pyarrow.chunked_array([batch.kept[name] for batch in batches]).combine_chunks()
    mask = np.concatenate(masks) if masks else None
    return DocumentBatch(Ragged(ids, np.cumsum(sizes)), mask, sum(batch.skipped for batch in batches), kept)


def _taken(batch: DocumentBatch, order: np.ndarray[tuple[int], np.dtype[np.int64]]) -> DocumentBatch:
    """Return some documents, in a given order."""
    begins = batch.ids.offsets[order]
    sizes = batch.ids.offsets[order + 1] - begins
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)
    mask = None if batch.mask is None else batch.mask[places]
    kept = {name: values.take(order) for name, values in batch.kept.items()}
    return DocumentBatch(Ragged(batch.ids.ids[places], offsets), mask, 0, kept)
