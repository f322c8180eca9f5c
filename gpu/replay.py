"""Replay of small batches by one launch, since launching their kernels one by one takes longer than the kernels run.

The launches for a bucket, a batch of some size, are recorded once with its sizes and memory, and replayed for every
batch that fits into it. A smaller batch is filled up with padding: documents that are not UTF-8, which every exact mode
refuses, and then empty ones. So kernels need not know how much of the bucket is in use.

The recorded kernels write the ids into arrays that are the caller's own, whose addresses travel with the text. The number
of ids is not known then, so the arrays have room for a bound that few texts exceed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, EncodedBatch
from tokenweir.gpu.modes.batch import TILE, Batch
from tokenweir.gpu.modes.exact import REASONS, ExactMode
from tokenweir.gpu.texts import BatchPart, BatchTexts

PADDING = b"\x80" + b" a" * 127 + b"."
"""A document of the padding, of words that are single tokens, so that no merging is needed."""

BYTES_OF_ID = 2
"""The arrays of a batch have room for an id for so many bytes of text. With more ids, these are collected once more."""


class Bucket(NamedTuple):
    """The greatest batch that a recording can replay.

    Attributes:
        size: The most bytes of text.
        documents: The most documents.

    """

    size: int
    documents: int

    def holds(self, part: BatchPart) -> bool:
        """Return whether a part has at most the bucket's bytes and documents."""
        return part.size <= self.size and len(part) <= self.documents


BUCKETS = tuple(Bucket(TILE << i, 16 << i) for i in range(8))
"""The buckets, the smallest first: up to 1 MiB, from where on kernels take longer than their launches."""


class Replay:
    """The recorded kernel launches for batches up to a bucket's size, and the host memory that they read."""

    def __init__(self, device: Device, mode: ExactMode, bucket: Bucket, parse_special: bool) -> None:
        """Record the launches of a mode; `parse_special` is as in `ExactMode.encode`."""
        room = bucket.size + SLACK
        steps = bucket.documents + bucket.size // len(PADDING) + 1
        self._device = device
        self._staging = device.pinned(room + 8 * (steps + 4))
        self._text, words = self._staging[: bucket.size], self._staging[room:].view(np.int64)
        self._offsets, self._results = words[:steps], words[steps:]
        self._staging[bucket.size : room] = 0
        self._padding = np.resize(np.frombuffer(PADDING, np.uint8), bucket.size)
        self._steps = len(PADDING) * np.arange(steps)
        self._pad(0, 0)

        def work(copy: Any) -> Batch:
            words = copy[room:].view(np.int64)
            batch = mode.begin(copy[:room], words[:steps], parse_special=parse_special, guards=None)
            batch.compact(bucket.documents, given=words[steps:])
            return batch

        nothing = self._allocate(BatchPart(0, 0, 0))
        self._recording = device.record(self._staging, work)  # which is done once
        del nothing

    def encode(self, texts: BatchTexts, part: BatchPart) -> EncodedBatch:
        """Encode a part that fits into the bucket, whose documents must be on the host and have no guards."""
        texts.copy(part, self._text, self._offsets[: len(part) + 1])
        self._pad(part.size, len(part))
        compacted = self._allocate(part)
        with self._recording.replay() as batch:
            return batch.collect(REASONS, len(part), compacted)

    def _allocate(self, part: BatchPart) -> tuple[Any, Any]:
        """Allocate the arrays of a part's ids and offsets, and put their addresses where the recorded kernel reads them."""
        room = part.size // BYTES_OF_ID + len(part)
        ids, offsets = self._device.words([room, 2 * (len(part) + 1)])
        self._results[:] = self._device.address(ids), self._device.address(offsets), len(part), room
        return ids.view(np.int32), offsets.view(np.int64)

    def _pad(self, size: int, documents: int) -> None:
        """Fill the rest of the host memory with padding documents, after a part's `size` bytes and `documents` documents."""
        self._text[size:] = self._padding[: len(self._text) - size]
        steps = self._steps[: len(self._offsets) - documents]
        np.minimum(size + steps, len(self._text), out=self._offsets[documents:])


class Replays:
    """The recordings of a mode, one for each bucket; each is made for the first batch that needs it."""

    def __init__(self, device: Device, mode: ExactMode) -> None:
        """Begin without recordings; the mode's tables must be on the device."""
        self._device, self._mode = device, mode
        self._replays: dict[tuple[Bucket, bool], Replay] = {}

    def encode(self, texts: BatchTexts, part: BatchPart, parse_special: bool) -> EncodedBatch | None:
        """Encode a part by replaying the recording of the smallest bucket that it fits into.

        Args:
            texts: The texts of the call.
            part: The part of them to encode.
            parse_special: Whether to match added tokens.

        Returns:
            The ids; None if the part cannot be replayed: it fits into no bucket, lies on the device already, or has guards.

        """
        bucket = next((bucket for bucket in BUCKETS if bucket.holds(part)), None)
        if bucket is None or isinstance(texts.documents, DeviceDocuments) or texts.guards_of(part) is not None:
            return None
        key = bucket, parse_special
        if key not in self._replays:
            self._replays[key] = Replay(self._device, self._mode, *key)
        return self._replays[key].encode(texts, part)
