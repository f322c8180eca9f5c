"""Slices of Arrow batches by the size of their decoded values, which may be far more than their bytes.

A dictionary has a repeated text once, and views of texts may share their bytes. Encoding writes the ids of each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow

MAX_ROWS = 1 << 16
"""The most rows that are read at a time."""


def slices(batch: pyarrow.RecordBatch, most_bytes: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield slices of a batch, in order, whose decoded values have at most `most_bytes`, or that have a single row."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        total += decoded_sizes(column)
    ends = np.cumsum(total)
    at = 0
    while at < batch.num_rows:
        before = int(ends[at - 1]) if at else 0
        stop = int(np.searchsorted(ends, before + most_bytes, side="right"))
        stop = min(max(stop, at + 1), at + MAX_ROWS)
        yield batch.slice(at, stop - at)
        at = stop


def decoded_sizes(array: pyarrow.Array) -> NDArray[np.int64]:
    """Return the approximate number of bytes of each decoded value of an array."""
    from pyarrow import compute, types

    kind = array.type
    if types.is_dictionary(kind):
        sizes = decoded_sizes(array.dictionary)
        places = array.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return sizes[places] if len(sizes) else np.zeros(len(array), np.int64)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1] or b"", np.int32)[::4]  # of 16 bytes, which begin with the length
        return views[array.offset : array.offset + len(array)].astype(np.int64)
    if types.is_string(kind) or types.is_binary(kind) or types.is_large_string(kind) or types.is_large_binary(kind):
        lengths: Any = compute.binary_length(array).fill_null(0)
        return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        ends = np.concatenate([[0], np.cumsum(decoded_sizes(array.values))])
        offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
        return np.asarray(np.diff(ends[offsets]), np.int64)
    if types.is_struct(kind):
        return sum((decoded_sizes(field) for field in array.flatten()), np.zeros(len(array), np.int64))
    return np.full(len(array), -(-array.nbytes // max(1, len(array))), np.int64)
