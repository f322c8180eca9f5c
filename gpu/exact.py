"""Exact mode: the ids of a batch are those of the CPU's encoder, document by document.

A few launches, whatever the batch: documents are marked, added tokens found, each stage of the pre-tokenizer cuts, pieces
become ids by look-up or merging, and these are counted and collected. Between them only bit maps pass, and ids that stand
where their tokens begin in the text. Nothing comes back to the host before the number of ids does.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import Encoded
from tokenweir.gpu.tables import ExactTables

MAX_BYTES = (1 << 31) - (1 << 20)
"""Of a batch: places in it are 32-bit numbers."""

MOST = 1 << 16
"""Bytes of a piece, or from one sure boundary to the next, unless told otherwise: one thread or block goes through it."""

LONG_WORKERS = 64
"""At most so many blocks merge long pieces at once, each in a scratch of 16 bytes for each byte of a piece."""

_THREADS = 256
_TILE = 8192  # bytes a block
_MEDIUM_SYMBOLS, _LONG_BYTES = 32, 256  # kernels/pieces.cuh
_N_COUNTERS = 8
_ANY_REFUSED, _N_IDS = 0, 4  # kernels/documents.cuh: `Counter`


class Refusal(IntFlag):
    """Why a document is left to the host, as kernels/documents.cuh has it."""

    INVALID_UTF8 = 1
    NOT_SURELY_NFC = 2
    TOO_LONG = 4
    ODD_TOKEN = 8

    @property
    def reason(self) -> str:
        """The first of the reasons in words."""
        return next(words for flag, words in _REASONS.items() if self & flag)


_REASONS = {
    Refusal.INVALID_UTF8: "it is not UTF-8",
    Refusal.TOO_LONG: "giant piece",
    Refusal.ODD_TOKEN: "it has an added token that takes white space along or wants no word beside it",
    Refusal.NOT_SURELY_NFC: "form C may change it",
}


class ExactBatch:
    """A tokenizer's tables on a device, and the launches that encode a batch by them.

    Attributes:
        tokenizer: The tokenizer whose ids these are, for the documents that are left out.
        most: Bytes of a piece, and of a stretch without a sure boundary, beyond which a document is left out.

    """

    def __init__(self, tok: Tokenizer, device: Device, *, most: int = MOST, workers: int = 512) -> None:
        """Copy the tables to the device.

        Args:
            tok: A tokenizer with byte-level BPE.
            device: Where the kernels run.
            most: See the attribute.
            workers: How many blocks share the pieces that wait for merging.

        Raises:
            UnsupportedTokenizerError: For what the kernels cannot do exactly.

        """
        self.tokenizer = tok
        self.most = most
        self._device = device
        self._workers = workers
        self._tables = ExactTables(tok, device)
        self._scratch: Any = None

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> Encoded:
        """Encode the documents of a batch.

        Args:
            text: All of them, one after the other, and at least 8 bytes more, whatever they are; uint8 on the device,
                beginning at an address that is a multiple of 8.
            offsets: Where each begins and the last one ends, in bytes from 0; int64 on the device.
            parse_special: Match added tokens; if not, no control token comes of text.
            guards: Sorted offsets in `text` of characters that no added token may cover.

        Raises:
            ValueError: The text is too long, or is not where it has to be.

        """
        device = self._device
        n_documents, n = int(offsets.size) - 1, int(device.to_host(offsets[-1:])[0])
        if n > MAX_BYTES:
            raise ValueError(f"a batch of {n} bytes; at most {MAX_BYTES} are possible")
        if device.address(text) % 8 or int(text.size) < n + 8:
            raise ValueError("the text of a batch must be at a multiple of 8 and have 8 bytes more")
        if n == 0:
            nothing = np.zeros(0, np.int64)
            return Encoded(device.empty(0, np.int32), device.zeros(n_documents + 1, np.int64), nothing, ())
        launches = _Launches(device, text, n, offsets, n_documents, self.most)
        launches.mark()
        if parse_special:
            self._find_added(launches, guards)
        for stage in self._tables.cuts:
            launches.cut(stage)
        launches.encode(self._tables.bpe, self._workers)
        return launches.collect()

    def _find_added(self, launches: _Launches, guards: NDArray[np.int64] | None) -> None:
        places = self._device.to_device(np.zeros(1, np.int64) if guards is None or not guards.size else guards)
        n_guards = 0 if guards is None else guards.size
        for added in self._tables.added:
            launches.find_added(added, places, n_guards)


class _Launches:
    """One batch on its way through the kernels."""

    def __init__(self, device: Device, text: Any, n: int, offsets: Any, n_documents: int, most: int) -> None:
        self._device = device
        self._text, self._n = text, np.uint32(n)
        self._offsets, self._n_documents = offsets, np.uint32(n_documents)
        self._most = np.uint32(most)
        self._n_words = -(-n // 32)
        self._n_tiles = -(-n // _TILE)
        self._begins = self._bit_map()
        self._taken = self._bit_map()
        self._tokens = self._bit_map()
        self._refusals = device.zeros(n_documents, np.uint32)
        self._counters = device.zeros(_N_COUNTERS, np.uint32)
        self._ids = device.empty(n, np.uint32)

    def _bit_map(self) -> Any:
        return self._device.zeros(self._n_words, np.uint32)

    def mark(self) -> None:
        self._device.launch(
            "mark_documents",
            -(-int(self._n_documents) // _THREADS),
            _THREADS,
            self._text,
            self._offsets,
            self._n_documents,
            self._begins,
            self._refusals,
            self._counters,
        )
