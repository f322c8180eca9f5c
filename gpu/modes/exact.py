"""Exact mode: the ids of a batch are those of the CPU's encoder, document by document.

A few launches, whatever the batch: documents are marked, added tokens found, each stage of the pre-tokenizer cuts, pieces
become ids by look-up or merging, and these are counted and collected. Between them only bit maps pass, and ids that stand
where their tokens begin in the text. Nothing comes back to the host before the number of ids does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, Encoded
from tokenweir.gpu.modes.batch import THREADS, Batch
from tokenweir.gpu.modes.tables import ExactTables
from tokenweir.gpu.shared import constants

PIECE_BYTES = 1 << 16
"""The default of `max_bytes`: bytes of a piece, or from one sure boundary to the next."""

MAX_PIECE_BYTES = 1 << 24
"""The most that `max_bytes` can be where blocks merge pieces: each of them has 16 bytes of scratch for a byte."""

LONG_WORKERS = 64
"""The most blocks that merge long pieces at once."""

_CONSTANTS = constants("encode.cu")
_WARPS = constants("merge.cu")["kWarps"]

REASONS = {
    _CONSTANTS["kInvalidUtf8"]: "it is not UTF-8",
    _CONSTANTS["kTooLong"]: "giant piece",
    _CONSTANTS["kOddToken"]: "it has an added token that takes white space along or wants no word beside it",
    _CONSTANTS["kNotSurelyNfc"]: "Unicode's form C may change it",
    _CONSTANTS["kSpaceSign"]: "it has a U+2581",
    _CONSTANTS["kGuardedPiece"]: "it has user text, and the model has control tokens of its own",
    _CONSTANTS["kOddCharacter"]: "it has a character that normalizing makes several of, or may move",
}
"""Why a document is left out, by the bits of `Refusal` in kernels/common/documents.cuh; of several reasons, the first here."""


class ExactMode(ABC):
    """Exact mode for a kind of model: its tables on a device, and the launches that encode a batch by them.

    Attributes:
        tokenizer: The tokenizer whose ids these are, for the documents that are left out.
        max_bytes: Bytes that one thread or block goes through at most; a document that wants more is left out.

    """

    BOUNDS: ClassVar[tuple[int, int]] = (0, (1 << 30) - 1)
    """The least and the greatest `max_bytes`."""

    def __init__(self, tokenizer: Tokenizer, device: Device, *, max_bytes: int = PIECE_BYTES) -> None:
        """Copy the tables to the device.

        Args:
            tokenizer: A tokenizer with the kind of model that the class is for.
            device: Where the kernels run.
            max_bytes: See the attribute.

        Raises:
            UnsupportedTokenizerError: For what the kernels cannot do exactly.
            ValueError: `max_bytes` is out of range.

        """
        least, most = self.BOUNDS
        if not least <= max_bytes <= most:
            raise ValueError(f"max_bytes must be from {least} to {most}, not {max_bytes}")
        self.tokenizer = tokenizer
        self.max_bytes = max_bytes
        self._device = device
        self._load()

    @abstractmethod
    def _load(self) -> None:
        """Copy the tables of the tokenizer's kind of model."""

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> Encoded:
        """Encode the documents of a batch.

        Args:
            text: All of them, one after the other, and `SLACK` zero bytes; uint8 on the device, beginning at an address
                that is a multiple of 8.
            offsets: Where each begins and the last one ends, in bytes; int64 on the device.
            parse_special: Match added tokens; if not, text never becomes a control token.
            guards: Sorted offsets in `text` of characters that no added token may cover.

        Raises:
            ValueError: The text is empty, too long, or not where it has to be.

        """
        return self.begin(text, offsets, parse_special=parse_special, guards=guards).collect(REASONS)

    @abstractmethod
    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        """The same up to the number of ids. Without guards, nothing of it comes from the host or goes there."""


class MergingMode(ExactMode):
    """A mode whose blocks merge pieces; `max_bytes` is of a piece, and of a text without a sure boundary."""

    BOUNDS = 64, MAX_PIECE_BYTES

    def __init__(
        self, tokenizer: Tokenizer, device: Device, *, max_bytes: int = PIECE_BYTES, workers: int = 512
    ) -> None:
        """Copy the tables to the device.

        Args:
            tokenizer: A tokenizer with the kind of model that the class is for.
            device: Where the kernels run.
            max_bytes: See the attribute.
            workers: How many blocks share the pieces that wait for merging.

        Raises:
            UnsupportedTokenizerError: For what the kernels cannot do exactly.
            ValueError: `max_bytes` or `workers` is out of range.

        """
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        super().__init__(tokenizer, device, max_bytes=max_bytes)
        self._workers = workers
        self._far = device.empty(4 * max_bytes * min(workers, LONG_WORKERS), np.uint32)


class ByteLevelMode(MergingMode):
    """Exact mode for byte-level BPE."""

    def _load(self) -> None:
        self._tables = ExactTables(self.tokenizer, self._device)

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        """See `ExactMode`."""
        tables, searches = self._tables, self._tables.added if parse_special else []
        bit_maps = 4 + len(searches[1:]) + len(tables.cuts)
        batch = PieceBatch(self._device, text, offsets, self.max_bytes, bit_maps)
        batch.find_added(searches, guards)
        for stage in tables.cuts:
            batch.cut(stage)
        if tables.giants is not None:
            batch.cut_giants(tables.giants)
        batch.encode(tables.bpe)
        batch.merge(tables.bpe, self._workers, self._far)
        return batch.count()


class PieceBatch(Batch):
    """A batch whose documents are cut into pieces, and the launches that do so and encode these."""

    def __init__(self, device: Device, text: Any, offsets: Any, max_bytes: int, bit_maps: int) -> None:
        n = int(text.size) - SLACK
        longer = _CONSTANTS["kShortSymbols"], _CONSTANTS["kMediumBytes"]
        scratch = [2 * (n // (size + 1) + 1) for size in longer]
        super().__init__(device, text, offsets, max_bytes, bit_maps=bit_maps, scratch=scratch)
        self.begins = self.mark()  # of documents, and then of pieces

    def cut(self, stage: Any) -> None:
        """Cut the pieces that there are by a stage."""
        begins, self.begins = self.begins, self.bit_map()
        self.launch(
            "cut_pieces",
            self.n_tiles,
            stage,
            self.text,
            self.n,
            self.offsets,
            self.n_documents,
            begins,
            self.taken,
            self.max_bytes,
            self.begins,
            self.refusals,
            self.counters,
        )

    def cut_giants(self, pairs: Any) -> None:
        """Cut giant pieces where no merge crosses."""
        begins, self.begins = self.begins, self.bit_map()
        by_words = pairs, self.text, self.n, begins, self.taken, self.begins
        self.launch("cut_giants", -(-self.n_words // THREADS), *by_words)

    def encode(self, bpe: Any) -> None:
        """Encode the pieces that a look-up or a thread can; the others wait."""
        self.launch(
            "encode_pieces",
            self.n_tiles,
            bpe,
            self.text,
            self.n,
            self.offsets,
            self.n_documents,
            self.begins,
            self.taken,
            self.max_bytes,
            self.ids,
            self.tokens,
            *self.scratch,
            self.refusals,
            self.counters,
        )

    def merge(self, bpe: Any, workers: int, far: Any) -> None:
        """Merge the pieces that wait; a small batch cannot have work for all workers."""
        medium, long_pieces = (pieces.size // 2 for pieces in self.scratch)  # at most
        for_long = min(workers, LONG_WORKERS, long_pieces)
        for_medium = min(workers, -(-medium // _WARPS))
        self.launch(
            "merge_pieces",
            for_long + for_medium,
            bpe,
            self.text,
            *self.scratch,
            np.uint32(for_long),
            self.max_bytes,
            far,
            self.counters,
            self.ids,
            self.tokens,
        )
