"""The texts of a batch, and their division between devices and into parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode._core import DeviceStrings, Documents
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.texts import for_core, is_arrow
from tokenweir.gpu.arrow import DeviceDocuments
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import EncodedBatch

SHARE_BYTES = 1 << 20
"""The least bytes of text for each device that shares a batch: with fewer, starting a thread and gathering the ids take
as long as sharing saves.
"""


class GuardedText(Protocol):
    """A rendered prompt, such as `tokenweir.Prompt`."""

    @property
    def text(self) -> str:
        """The text to be encoded."""
        ...

    def guarded_for(self, tokenizer: Tokenizer) -> Sequence[int]:
        """Return the ascending offsets of characters that no control token of the tokenizer may cover."""
        ...


class BatchTexts:
    """The texts of one call.

    Attributes:
        documents: Their UTF-8, on the host or on the device.
        offsets: The byte at which each text begins and the last one ends, counted over all texts; int64[n + 1].
        prompts: The prompts among them, by their number.
        guarded: For each prompt, by its number, the ascending offsets of characters that no control token may cover.
        guards: The same offsets of all prompts as bytes, counted over all texts; sorted, int64.

    """

    documents: Documents | DeviceDocuments

    def __init__(
        self, texts: Iterable[str | bytes | GuardedText], tokenizer: Tokenizer, devices: Sequence[Device]
    ) -> None:
        """Convert the texts to UTF-8 documents.

        Args:
            texts: As in `GpuEncoder.encode_batch`.
            tokenizer: The tokenizer against whose control tokens prompts are guarded.
            devices: The devices of the encoder; an Arrow array on a device must lie on one of them.

        Raises:
            TextError: A text has a lone surrogate; the message says which.
            TypeError: A text is neither `str`, `bytes` nor a prompt.
            ValueError: An Arrow array is not one of strings, has a null, or lies on another device.

        """
        given = for_core(texts)
        self.prompts: dict[int, GuardedText] = {}
        self.guarded: dict[int, Sequence[int]] = {}
        self.guards: NDArray[np.int64] = np.zeros(0, np.int64)
        if is_arrow(given):
            self.documents = _arrow(given, devices)
        else:
            self.documents = self._documents(given, tokenizer)
        self.offsets = self.documents.offsets

    def _documents(self, given: list[Any], tokenizer: Tokenizer) -> Documents:
        """Convert texts and prompts to UTF-8; also set `prompts`, `guarded` and `guards`."""
        with suppress(TypeError):  # most batches have plain texts only, and need no second pass
            return Documents(given)
        self.prompts = {i: text for i, text in enumerate(given) if hasattr(text, "guarded_for")}
        self.guarded = {i: prompt.guarded_for(tokenizer) for i, prompt in self.prompts.items()}
        documents = Documents([text.text if i in self.prompts else text for i, text in enumerate(given)])
        places = [
            documents.offsets[i] + np.array(documents.positions(i, guarded), np.int64)
            for i, guarded in self.guarded.items()
            if guarded
        ]
        if places:
            self.guards = np.concatenate(places)
        return documents

    def __len__(self) -> int:
        return len(self.documents)

    def shares(self, devices: Sequence[Device]) -> list[range]:
        """Divide the documents between devices, evenly by bytes.

        A small batch goes to fewer devices: each share has about `SHARE_BYTES` at least. Documents that lie on a device
        all go to it.

        Returns:
            For each device the range of the numbers of its documents, which may be empty.

        """
        n, size = len(devices), int(self.offsets[-1])
        if isinstance(self.documents, DeviceDocuments):
            own = next(i for i, device in enumerate(devices) if device is self.documents.device)
            bounds = [0] * (own + 1) + [len(self)] * (n - own)
        else:
            shared = min(n, max(size // SHARE_BYTES, 1))
            inner = np.searchsorted(self.offsets, [size * i // shared for i in range(1, shared)]).tolist()
            bounds = [0, *inner, *[len(self)] * (n - shared + 1)]
        return [range(begin, end) for begin, end in pairwise(bounds)]

    def parts(self, share: range, step: int, limit: int) -> Iterator[BatchPart]:
        """Divide a share into parts of neighbouring documents.

        Args:
            share: The numbers of the share's documents.
            step: The most bytes of a part of several documents; a longer document is a part by itself.
            limit: The most bytes of a document; a longer one is left to the CPU.

        """
        first = share.start
        while first < share.stop:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + step, "right")) - 1
            last = min(last, share.stop)
            refusal = None
            if last == first:
                last += 1
                size = int(self.offsets[last] - self.offsets[first])
                refusal = f"longer than {limit} bytes" if size > limit else None
            yield BatchPart(first, last, int(self.offsets[last] - self.offsets[first]), refusal)
            first = last

    def copy(self, part: BatchPart, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        """Copy a part's bytes into `text`, and its offsets, counted from its first byte, into `offsets`.

        The documents must be on the host.
        """
        assert isinstance(self.documents, Documents)
        self.documents.copy(part.first, part.last, text)
        own = self.offsets[part.first : part.last + 1]
        np.subtract(own, own[0], out=offsets)

    def guards_of(self, part: BatchPart) -> NDArray[np.int64] | None:
        """Return the `guards` within a part, as bytes counted from its first one; None if it has no guards."""
        start = self.offsets[part.first]
        begin, end = np.searchsorted(self.guards, (start, self.offsets[part.last]))
        return self.guards[begin:end] - start if begin < end else None


def _arrow(texts: Any, devices: Sequence[Device]) -> Documents | DeviceDocuments:
    if not hasattr(texts, "__arrow_c_device_array__") or (strings := DeviceStrings(texts)).on_host:
        return Documents(texts)
    for device in devices:
        if device.reads(*strings.device):
            return DeviceDocuments(strings, device)
    (kind, number), names = strings.device, " and ".join(device.name for device in devices)
    raise ValueError(
        f"an Arrow array on device {number} of Arrow's type {kind}, which is not one that {names} can read"
    )


@dataclass
class BatchPart:
    """A part of a batch: neighbouring documents that are encoded together.

    Attributes:
        first: The number of the first document.
        last: One past the number of the last.
        size: The bytes of text.
        refusal: The reason why the whole part is left to the CPU, or None.
        encoded: The device's result. None before encoding, or if the part has no work for the device.

    """

    first: int
    last: int
    size: int
    refusal: str | None = None
    encoded: EncodedBatch | None = None

    def __len__(self) -> int:
        return self.last - self.first

    @property
    def on_device(self) -> bool:
        """Whether the part has work for the device."""
        return self.size > 0 and self.refusal is None

    def refused(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each document that is left to the CPU, and the reason."""
        if self.refusal is not None:
            yield from ((i, self.refusal) for i in range(self.first, self.last))
        if self.encoded is not None:
            numbers = (self.first + self.encoded.refused).tolist()
            yield from zip(numbers, self.encoded.reasons, strict=True)


CpuIds = Mapping[int, NDArray[np.int32]]
"""The ids of documents that were left to the CPU, by the documents' numbers."""
