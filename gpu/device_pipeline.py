"""One device of an encoder, with its tables and buffers: it encodes its share of a batch, part after part."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, Encoded
from tokenweir.gpu.modes.batch import MAX_BYTES
from tokenweir.gpu.replay import Replays
from tokenweir.gpu.texts import Part, Texts

MAX_BATCH_BYTES = 512 << 20
"""The most bytes of text that are on a device at once, unless an encoder is told otherwise."""

STEP_BYTES = 32 << 20
"""Bytes of text that make a batch: enough to fill a GPU, little enough that the next one is copied meanwhile."""

SCRATCH = 32
"""Bytes of device memory for a byte of text, ids included; more than any mode takes."""

STAGING_STEP = 4 << 20
"""Pinned memory is allocated in multiples of this, since every growth takes milliseconds."""

_ALIGNMENT = 256


class Mode(Protocol):
    """Tables of a tokenizer on a device, and the launches that encode a batch by them.

    Attributes:
        tokenizer: Whose ids they are; it encodes what the kernels leave out.

    """

    tokenizer: Tokenizer

    def encode(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Encoded:
        """Encode documents; they may be empty, but not all of them.

        Args:
            text: All documents one after the other and `SLACK` zero bytes; uint8 on the device.
            offsets: Where each begins and the last one ends; int64 on the device.
            parse_special: Match added tokens.
            guards: Sorted offsets in `text` of characters that no control token may cover; None if there are none.

        """
        ...


class Lane:
    """A device and what an encoder has there. Threads take turns.

    Attributes:
        device: Where it runs.
        mode: The tables, and the launches.

    """

    def __init__(self, device: Device, mode: Mode, max_batch_bytes: int | None, replays: Replays | None) -> None:
        """Take a device, a mode's tables on it, and its recordings, if small batches are to be replayed; `max_batch_bytes` is
        as in `GpuEncoder`.
        """
        self.device = device
        self.mode = mode
        self._replays = replays
        self._max_batch_bytes = max_batch_bytes
        self._staging = [np.empty(0, np.uint8), np.empty(0, np.uint8)]

    def encode(self, texts: Texts, share: range, parse_special: bool) -> list[Part]:
        """Encode some documents part after part; while the device is at one, the next is copied to it."""
        with self.device.use():
            limit = min(self._max_batch_bytes or MAX_BATCH_BYTES, MAX_BYTES - 1)  # a mode may put a space before it
            size = texts.offsets[share.stop] - texts.offsets[share.start]
            if self._max_batch_bytes is None and size > STEP_BYTES:  # to ask takes a while
                limit = min(limit, self.device.free_bytes() // SCRATCH)
            parts = list(texts.parts(share, min(STEP_BYTES, limit), limit))
            for_device = [part for part in parts if part.on_device]
            if len(for_device) == 1:  # most often; a thread costs more than it could save
                self._encode_alone(texts, for_device[0], parse_special)
            elif for_device:
                self._encode_in_turn(texts, for_device, parse_special)
        return parts

    def encode_to_end(self, texts: Texts, share: range, parse_special: bool) -> list[Part]:
        """The same, and wait for it, so that other devices and threads find the ids."""
        with self.device.use():
            parts = self.encode(texts, share, parse_special)
            self.device.synchronize()
        return parts

    def _encode_alone(self, texts: Texts, part: Part, parse_special: bool) -> None:
        if self._replays:
            part.encoded = self._replays.encode(texts, part, parse_special)
        if part.encoded is None:
            self._encode_part(texts, part, self._upload(texts, part, 0), parse_special)

    def _encode_in_turn(self, texts: Texts, parts: list[Part], parse_special: bool) -> None:
        with ThreadPoolExecutor(1, "tokenweir-upload") as ahead:
            coming = ahead.submit(self._upload_apart, texts, parts[0], 0)
            for turn, part in enumerate(parts, 1):
                copied = coming.result()
                if turn < len(parts):
                    coming = ahead.submit(self._upload_apart, texts, parts[turn], turn % 2)
                try:
                    self._encode_part(texts, part, copied, parse_special)
                finally:
                    self.device.synchronize()  # memory of `copied` goes back to the other thread's stream

    def _encode_part(self, texts: Texts, part: Part, copied: tuple[Any, Any], parse_special: bool) -> None:
        part.encoded = self.mode.encode(*copied, parse_special=parse_special, guards=texts.guards_of(part))

    def _upload_apart(self, texts: Texts, part: Part, turn: int) -> tuple[Any, Any]:
        with self.device.apart():
            return self._upload(texts, part, turn)

    def _upload(self, texts: Texts, part: Part, turn: int) -> tuple[Any, Any]:
        """Copy a part's text and offsets to the device, in one piece, by way of one of two buffers."""
        if isinstance(texts.documents, DeviceDocuments):
            return texts.documents.part(part.first, part.last)
        room = -(-(part.size + SLACK) // _ALIGNMENT) * _ALIGNMENT
        total = room + (len(part) + 1) * 8
        if self._staging[turn].size < total:
            self._staging[turn] = self.device.pinned(-(-total // STAGING_STEP) * STAGING_STEP)
        staging = self._staging[turn]
        texts.copy(part, staging, staging[room:total].view(np.int64))
        staging[part.size : part.size + SLACK] = 0
        copied = self.device.to_device(staging[:total])
        return copied[: part.size + SLACK], copied[room:].view(np.int64)
