"""The result of a batch's kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SLACK = 16
"""The number of zero bytes after the text of a batch, since kernels read whole words."""


class EncodedBatch(NamedTuple):
    """The ids of a batch on the device, and the documents that the kernels refused.

    Attributes:
        ids: The ids of all documents one after the other; int32.
        offsets: The place in `ids` at which each document begins and the last one ends; int64.
        refused: The numbers of the refused documents, ascending; they have no ids here, and the CPU encodes them.
        reasons: For each refused document the reason, as text.

    """

    ids: Any
    offsets: Any
    refused: NDArray[np.int64]
    reasons: tuple[str, ...]
