"""The pipeline of one of an encoder's devices: it encodes its share of a batch part by part, copying the next meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.device import Device, Event
from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.modes.batch import MAX_BYTES, Batch
from tokenweir.gpu.replay import Replays
from tokenweir.gpu.texts import BatchPart, BatchTexts

MAX_BATCH_BYTES = 512 << 20
"""The most bytes of text that are on a device at once, unless an encoder is told otherwise."""

STEP_BYTES = 16 << 20
"""The bytes of text in a part: enough to fill a GPU, few enough that copying the next part overlaps with kernels."""

SLOTS = 4
"""The parts that are in work at the same time: in pinned memory, on the bus, on the device, and being collected. A part's
slot is its own until its ids are collected, which reads its offsets and perhaps its text.
"""

KEPT_BYTES = 2 * STEP_BYTES
"""The most bytes of device memory that is kept for the text of a slot."""

SCRATCH = 32
"""An upper bound of the bytes of device memory that a mode takes for a byte of text, ids included."""

STAGING_STEP = 4 << 20
"""The granularity of pinned allocations, which are slow."""

_ALIGNMENT = 256


class Mode(Protocol):
    """A tokenizer's tables on a device, with the launches that encode a batch.

    Attributes:
        tokenizer: The tokenizer whose ids these are; it encodes the documents that the kernels refuse.
        reasons: The reasons of refusals, as `Batch.collect` takes them.

    """

    tokenizer: Tokenizer
    reasons: Mapping[int, str]

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        """Launch the encoding of documents, at least one of which is not empty; return the batch, to be collected.

        Args:
            text: All documents one after the other and `SLACK` zero bytes; uint8 on the device.
            offsets: The byte at which each document begins and the last one ends; int64 on the device.
            parse_special: Whether to match added tokens.
            guards: Sorted offsets in `text` of characters that no control token may cover, or None.

        """
        ...


@dataclass
class _Slot:
    """The buffers of a part: pinned memory and device memory, with the events after which they may be written again."""

    staging: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    text: Any = None
    copied: Event | None = None
    read: Event | None = None

    def give_back(self) -> None:
        """Drop the device memory, once all that reads it has ended: the pool may give it to another stream at once."""
        if self.read:
            self.read.synchronize()
        self.text = None


class DevicePipeline:
    """The encoding pipeline of one device: a mode's tables on it, and the staging buffers by which text reaches it.

    Only one thread at a time may use it.
    """

    def __init__(self, device: Device, mode: Mode, max_batch_bytes: int | None, replays: Replays | None) -> None:
        """Build the pipeline of a device.

        Args:
            device: The device.
            mode: The mode, whose tables are on the device.
            max_batch_bytes: As in `GpuEncoder`.
            replays: Recordings for small batches; None launches kernels one by one.

        """
        self.device = device
        self.mode = mode
        self._replays = replays
        self._max_batch_bytes = max_batch_bytes
        self._slots = [_Slot() for _ in range(SLOTS)]

    def encode(self, texts: BatchTexts, share: range, parse_special: bool) -> list[BatchPart]:
        """Encode a share of the documents part by part; each part is copied while the device encodes the one before.

        Args:
            texts: The texts of the whole call.
            share: The numbers of the documents to encode.
            parse_special: Whether to match added tokens.

        Returns:
            The parts in the documents' order, with their ids in `encoded`, on the device. A part that is left to the CPU,
            or has no text, has no ids.

        """
        with self.device.use():
            limit = min(self._max_batch_bytes or MAX_BATCH_BYTES, MAX_BYTES - 1)  # a mode may put a space before it
            size = texts.offsets[share.stop] - texts.offsets[share.start]
            if self._max_batch_bytes is None and size > STEP_BYTES:  # asking the driver is slow
                limit = min(limit, self.device.free_bytes() // SCRATCH)
            parts = list(texts.parts(share, min(STEP_BYTES, limit), limit))
            for_device = [part for part in parts if part.on_device]
            try:
                if len(for_device) == 1:  # the usual case; a thread would cost more than it saves
                    self._encode_alone(texts, for_device[0], parse_special)
                elif for_device:
                    self._encode_in_turn(texts, for_device, parse_special)
            except BaseException:
                self._settle()
                raise
            for slot in self._slots:
                if slot.text is not None and slot.text.size > KEPT_BYTES:
                    slot.give_back()
        return parts

    def encode_to_end(self, texts: BatchTexts, share: range, parse_special: bool) -> list[BatchPart]:
        """Encode a share as `encode` does, and wait for the device, so that other devices and threads can read the ids."""
        with self.device.use():
            parts = self.encode(texts, share, parse_special)
            self.device.synchronize()
        return parts

    def _encode_alone(self, texts: BatchTexts, part: BatchPart, parse_special: bool) -> None:
        if self._replays:
            part.encoded = self._replays.encode(texts, part, parse_special)
        if part.encoded is None:
            slot = self._slots[0]
            batch = self._begin(texts, part, self._upload(texts, part, slot), parse_special)
            part.encoded = batch.collect(self.mode.reasons)
            slot.read = self.device.record_event()  # the next call may come from a thread with another stream

    def _encode_in_turn(self, texts: BatchTexts, parts: list[BatchPart], parse_special: bool) -> None:
        """Encode parts, up to `SLOTS` of them at a time in different stages.

        While the device encodes one, a thread copies later ones into pinned memory, the bus carries them to the device, and
        this thread collects the one before.
        """
        with ThreadPoolExecutor(1, "tokenweir-upload") as ahead:
            self._run(ahead, texts, parts, parse_special)

    def _run(self, ahead: ThreadPoolExecutor, texts: BatchTexts, parts: list[BatchPart], parse_special: bool) -> None:
        slots = [self._slots[turn % SLOTS] for turn in range(len(parts))]

        def upload(turn: int) -> Future[tuple[Any, Any]]:
            return ahead.submit(self._upload_on_side_stream, texts, parts[turn], slots[turn])

        def collect(turn: int, batch: Batch) -> None:
            parts[turn].encoded = batch.collect(self.mode.reasons)
            slots[turn].read = self.device.record_event()
            if turn + SLOTS < len(parts):
                coming.append(upload(turn + SLOTS))

        coming = deque(upload(turn) for turn in range(min(SLOTS, len(parts))))
        begun: Batch | None = None
        for turn, (part, slot) in enumerate(zip(parts, slots, strict=True)):
            copied = coming.popleft().result()
            if slot.copied:
                self.device.wait_for(slot.copied.ptr)
            batch = self._begin(texts, part, copied, parse_special)
            batch.send_report()
            if begun is not None:
                collect(turn - 1, begun)
            begun = batch
        if begun is not None:
            collect(len(parts) - 1, begun)

    def _begin(self, texts: BatchTexts, part: BatchPart, copied: tuple[Any, Any], parse_special: bool) -> Batch:
        return self.mode.begin(*copied, parse_special=parse_special, guards=texts.guards_of(part))

    def _upload_on_side_stream(self, texts: BatchTexts, part: BatchPart, slot: _Slot) -> tuple[Any, Any]:
        with self.device.side_stream():
            copied = self._upload(texts, part, slot)
            slot.copied = self.device.record_event()
            return copied

    def _upload(self, texts: BatchTexts, part: BatchPart, slot: _Slot) -> tuple[Any, Any]:
        """Copy a part's text and offsets to the device in one transfer; return both as arrays of the device.

        Texts that lie on the device already are copied there instead.
        """
        if isinstance(texts.documents, DeviceDocuments):
            return texts.documents.part(part.first, part.last)
        room = -(-(part.size + SLACK) // _ALIGNMENT) * _ALIGNMENT
        total = room + (len(part) + 1) * 8
        if slot.copied:
            slot.copied.synchronize()
        if slot.staging.size < total:
            slot.staging = self.device.pinned(-(-total // STAGING_STEP) * STAGING_STEP)
        staging = slot.staging
        texts.copy(part, staging, staging[room:total].view(np.int64))
        staging[part.size : part.size + SLACK] = 0
        if total > KEPT_BYTES:
            slot.give_back()
            copied = slot.text = self.device.to_device(staging[:total])
        else:
            if slot.text is None or slot.text.size < total:
                slot.give_back()
                slot.text = self.device.empty(-(-total // STAGING_STEP) * STAGING_STEP, np.uint8)
            elif slot.read:
                self.device.wait_for(slot.read.ptr)
            copied = slot.text[:total]
            self.device.overwrite(copied, staging[:total])
        return copied[: part.size + SLACK], copied[room:].view(np.int64)

    def _settle(self) -> None:
        """Wait for all work on the slots, after an error, so that the next call may write them."""
        for slot in self._slots:
            if slot.copied:
                slot.copied.synchronize()
        self.device.synchronize()
