"""Exact mode: the ids of a batch are those of the CPU's encoder, document by document.

A few launches, whatever the batch: documents are marked, added tokens found, each stage of the pre-tokenizer cuts, pieces
become ids by look-up or merging, and these are counted and collected. Between them only bit maps pass, and ids that stand
where their tokens begin in the text. Nothing comes back to the host before the number of ids does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, Encoded
from tokenweir.gpu.tables import ExactTables

MAX_BYTES = (1 << 31) - (1 << 20)
"""Of a batch: places in it are 32-bit numbers."""

MOST = 1 << 16
"""Bytes of a piece, or from one sure boundary to the next, unless told otherwise: one thread or block goes through it."""

LONG_WORKERS = 64
"""At most so many blocks merge long pieces at once, each with 16 bytes of scratch for a byte of a piece."""

REASONS = {
    1: "it is not UTF-8",
    4: "giant piece",
    8: "it has an added token that takes white space along or wants no word beside it",
    2: "Unicode's form C may change it",
}
"""Why a document is left out, by the bits of kernels/documents.cuh; of several reasons, the first here."""

_THREADS = 256
_TILE = 8192  # bytes of a block
_SHORT_SYMBOLS, _MEDIUM_BYTES = 32, 256  # kernels/pieces.cuh
_ANY_REFUSED, _N_IDS, _N_COUNTERS = 0, 4, 8  # kernels/documents.cuh


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
        self._scratch = device.empty(4 * most * min(workers, LONG_WORKERS), np.uint32)

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> Encoded:
        """Encode the documents of a batch.

        Args:
            text: All of them, one after the other, and `SLACK` zero bytes; uint8 on the device, beginning at an address
                that is a multiple of 8.
            offsets: Where each begins and the last one ends, in bytes; int64 on the device.
            parse_special: Match added tokens; if not, no control token comes of text.
            guards: Sorted offsets in `text` of characters that no added token may cover.

        Raises:
            ValueError: The text is empty, too long, or not where it has to be.

        """
        n = int(text.size) - SLACK
        if not 0 < n <= MAX_BYTES:
            raise ValueError(f"a batch of {n} bytes; 1 to {MAX_BYTES} are possible")
        if self._device.address(text) % 8:
            raise ValueError("the text of a batch must begin at a multiple of 8")
        launches = _Launches(self._device, text, n, offsets, self.most)
        launches.mark()
        if parse_special:
            launches.find_added(self._tables.added, np.zeros(0, np.int64) if guards is None else guards)
        for stage in self._tables.cuts:
            launches.cut(stage)
        launches.encode(self._tables.bpe)
        launches.merge(self._tables.bpe, self._workers, self._scratch)
        return launches.collect()


class _Launches:
    """One batch on its way through the kernels."""

    def __init__(self, device: Device, text: Any, n: int, offsets: Any, most: int) -> None:
        n_documents = int(offsets.size) - 1
        self._device = device
        self._n_words, self._n_tiles = -(-n // 32), -(-n // _TILE)
        self._text, self._n, self._most = text, np.uint32(n), np.uint32(most)
        self._refusals = device.zeros(n_documents, np.uint32)
        self._counters = device.zeros(_N_COUNTERS, np.uint32)
        self._offsets, self._n_documents = offsets, np.uint32(n_documents)
        self._begins = self._bit_map()  # of documents, and then of pieces
        self._taken = self._bit_map()  # by added tokens
        self._tokens = self._bit_map()
        self._ids = device.empty(n, np.uint32)

    def mark(self) -> None:
        """Mark where documents begin."""
        arguments = self._text, self._offsets, self._n_documents, self._begins, self._refusals, self._counters
        self._launch("mark_documents", -(-int(self._n_documents) // _THREADS), *arguments)

    def find_added(self, searches: Sequence[Any], guards: NDArray[np.int64]) -> None:
        """Find added tokens; each search goes between what those before have found."""
        places = self._device.to_device(guards if guards.size else np.zeros(1, np.int64))
        for search in searches:
            earlier, self._taken = self._taken, self._bit_map()
            self._taken[:] = earlier
            self._launch(
                "find_added_tokens",
                -(-int(self._n) // (8 * _THREADS)),
                search,
                self._text,
                self._n,
                self._offsets,
                self._n_documents,
                places,
                np.uint32(guards.size),
                earlier,
                self._most,
                self._taken,
                self._ids,
                self._tokens,
                self._refusals,
                self._counters,
            )

    def cut(self, stage: Any) -> None:
        """Cut the pieces that there are by a stage."""
        begins, self._begins = self._begins, self._bit_map()
        self._launch(
            "cut_pieces",
            self._n_tiles,
            stage,
            self._text,
            self._n,
            self._offsets,
            self._n_documents,
            begins,
            self._taken,
            self._most,
            self._begins,
            self._refusals,
            self._counters,
        )

    def encode(self, bpe: Any) -> None:
        """Encode the pieces that a look-up or a thread can; the others wait."""
        self._medium = self._device.empty(2 * (int(self._n) // (_SHORT_SYMBOLS + 1) + 1), np.uint32)
        self._long = self._device.empty(2 * (int(self._n) // (_MEDIUM_BYTES + 1) + 1), np.uint32)
        self._launch(
            "encode_pieces",
            self._n_tiles,
            bpe,
            self._text,
            self._n,
            self._offsets,
            self._n_documents,
            self._begins,
            self._taken,
            self._most,
            self._ids,
            self._tokens,
            self._medium,
            self._long,
            self._refusals,
            self._counters,
        )

    def merge(self, bpe: Any, workers: int, scratch: Any) -> None:
        """Merge the pieces that wait."""
        arguments = self._counters, self._ids, self._tokens
        self._launch("merge_medium", workers, bpe, self._text, self._medium, *arguments)
        self._launch(
            "merge_long", min(workers, LONG_WORKERS), bpe, self._text, self._long, self._most, scratch, *arguments
        )

    def collect(self) -> Encoded:
        """Put the ids side by side."""
        before = self._device.empty(self._n_words, np.uint32)
        tiles = self._device.empty(self._n_tiles, np.uint32)
        of_documents = self._offsets, self._n_documents
        count = np.uint32(self._n_words), *of_documents, self._tokens, before, tiles, self._refusals, self._counters
        self._launch("count_ids", self._n_tiles, *count)
        counters = self._device.to_host(self._counters).tolist()
        ids = self._device.empty(counters[_N_IDS], np.int32)
        offsets = self._device.empty(int(self._n_documents) + 1, np.int64)
        document_blocks = int(self._n_documents) // _THREADS + 1
        found = self._tokens, before, tiles, self._ids, self._counters
        self._launch(
            "collect_ids",
            self._n_tiles + document_blocks,
            self._n,
            np.uint32(self._n_tiles),
            *of_documents,
            *found,
            ids,
            offsets,
        )
        if not counters[_ANY_REFUSED]:
            return Encoded(ids, offsets, np.zeros(0, np.int64), ())
        refusals = self._device.to_host(self._refusals)
        refused = np.flatnonzero(refusals)
        return Encoded(ids, offsets, refused, tuple(_reason(bits) for bits in refusals[refused].tolist()))

    def _bit_map(self) -> Any:
        return self._device.zeros(self._n_words, np.uint32)

    def _launch(self, kernel: str, blocks: int, *arguments: Any) -> None:
        self._device.launch(kernel, blocks, _THREADS, *arguments)


def _reason(bits: int) -> str:
    return next(reason for bit, reason in REASONS.items() if bits & bit)
