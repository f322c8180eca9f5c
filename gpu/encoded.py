"""What the kernels make of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SLACK = 16
"""Zero bytes after the text of a batch, for kernels that read words."""


class Encoded(NamedTuple):
    """The ids of a batch on the device, and the documents that the kernels left to the host.

    Attributes:
        ids: int32, of all documents one after the other.
        offsets: int64, where each document begins in `ids` and the last one ends.
        refused: The numbers of the documents that were left out, ascending; they have no ids here.
        reasons: Why, for each of those.

    """

    ids: Any
    offsets: Any
    refused: NDArray[np.int64]
    reasons: tuple[str, ...]
