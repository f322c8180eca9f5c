"""Arrays of `transformers.BatchEncoding`, filled row by row instead of value by value."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tokenweir.integrations.transformers.encoding import Encoding

COLUMNS = {"input_ids": "ids", "token_type_ids": "type_ids", "attention_mask": "attention_mask"}
"""Names in a `BatchEncoding`, and the attributes of its encodings that they are lists of."""

TENSORS = ("np", "pt")
"""Types of tensors that are int64 whether they are made of lists or of an int64 array."""


def batch_encoding(original: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` for `transformers.BatchEncoding` with a fast path from `Encoding` objects to arrays.

    The new `__init__` always ends with a call of `original`, the one that it replaces.
    """

    def __init__(
        self: Any,
        data: dict[str, Any] | None = None,
        encoding: Any = None,
        tensor_type: Any = None,
        prepend_batch_axis: bool = False,
        n_sequences: int | None = None,
    ) -> None:
        fast = tensor_type in TENSORS and not prepend_batch_axis and type(encoding) is list and type(data) is dict
        if fast and data is not None and all(type(each) is Encoding for each in encoding):
            data = {key: _rows(rows, encoding, COLUMNS[key]) if key in COLUMNS else rows for key, rows in data.items()}
        original(self, data, encoding, tensor_type, prepend_batch_axis, n_sequences)

    return __init__


def _rows(rows: Any, encodings: Sequence[Encoding], column: str) -> Any:
    """Return int64[rows, length] if the rows equal this column of the encodings and have one length.

    Otherwise the rows unchanged.
    """
    if type(rows) is not list or len(rows) != len(encodings) or not rows or not (n := len(encodings[0])):
        return rows
    found = np.empty((len(rows), n), np.int64)
    for number, (row, encoding) in enumerate(zip(rows, encodings, strict=True)):
        if len(encoding) != n or row != getattr(encoding, column):
            return rows
        found[number] = array("q", row)
    return found
