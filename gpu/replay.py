"""Small batches by one launch, since starting kernels one by one takes longer than they do.

What a batch of some size launches is recorded once, with its sizes and its memory, and done again for each batch that is not
larger. Behind such a batch stands padding: documents that are not UTF-8, which every exact mode leaves out, and then empty
ones. So no kernel needs to know that there is less to do.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, Encoded
from tokenweir.gpu.modes.batch import TILE
from tokenweir.gpu.modes.exact import REASONS, ExactMode
from tokenweir.gpu.texts import Part, Texts

PADDING = b"\x80" + b" a" * 15 + b"."
"""A document of the padding. It is short and of words that a look-up finds, so that it takes no time; a longer one might be
one piece to merge.
"""


class Bucket(NamedTuple):
    """The most that a batch may have to be done by a recording.

    Attributes:
        size: Bytes of text.
        documents: How many.

    """

    size: int
    documents: int

    def holds(self, part: Part) -> bool:
        """Whether a batch is not larger."""
        return part.size <= self.size and len(part) <= self.documents


BUCKETS = Bucket(TILE, 16), Bucket(8 * TILE, 256)
"""From the smallest on. Where a recording ceases to pay no device has shown yet; those of 64 KiB take a megabyte or two."""


class Replay:
    """The recording of a bucket."""

    def __init__(self, device: Device, mode: ExactMode, bucket: Bucket, parse_special: bool) -> None:
        """Record what a mode launches; `parse_special` is as in `ExactMode.encode`."""
        room = bucket.size + SLACK
        steps = bucket.documents + bucket.size // len(PADDING) + 1
        self._staging = device.pinned(room + 8 * steps)
        self._text, self._offsets = self._staging[: bucket.size], self._staging[room:].view(np.int64)
        self._staging[bucket.size : room] = 0
        self._padding = np.resize(np.frombuffer(PADDING, np.uint8), bucket.size)
        self._steps = len(PADDING) * np.arange(steps)
        self._pad(0, 0)
        begin = partial(mode.begin, parse_special=parse_special, guards=None)
        self._recording = device.record(self._staging, lambda copy: begin(copy[:room], copy[room:].view(np.int64)))

    def encode(self, texts: Texts, part: Part) -> Encoded:
        """Encode a part that the bucket holds."""
        texts.copy(part, self._text, self._offsets[: len(part) + 1])
        self._pad(part.size, len(part))
        with self._recording.again() as batch:
            return batch.collect(REASONS, len(part))

    def _pad(self, size: int, documents: int) -> None:
        """Put padding behind so many bytes and documents."""
        self._text[size:] = self._padding[: len(self._text) - size]
        steps = self._steps[: len(self._offsets) - documents]
        np.minimum(size + steps, len(self._text), out=self._offsets[documents:])


class Replays:
    """The recordings of a mode, each made when there is a batch for it."""

    def __init__(self, device: Device, mode: ExactMode) -> None:
        """Take a mode, whose tables every thread finds on the device."""
        self._device, self._mode = device, mode
        self._replays: dict[tuple[Bucket, bool], Replay] = {}

    def encode(self, texts: Texts, part: Part, parse_special: bool) -> Encoded | None:
        """Encode a part; None if it is too large, lies on the device, or has guards, which the host looks up."""
        bucket = next((bucket for bucket in BUCKETS if bucket.holds(part)), None)
        if bucket is None or isinstance(texts.documents, DeviceDocuments) or texts.guards_of(part) is not None:
            return None
        key = bucket, parse_special
        if key not in self._replays:
            self._replays[key] = Replay(self._device, self._mode, *key)
        return self._replays[key].encode(texts, part)
