"""Exact mode: the ids of a batch are those of the CPU's encoder, document by document.

Every batch takes the same few launches: mark documents, find added tokens, cut by each stage of the pre-tokenizer, look
pieces up or merge them, count the ids and collect them. The stages pass on bit maps, and ids at the places where their
tokens begin in the text. The host waits for nothing before the number of ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import NULL, Device
from tokenweir.gpu.encoded import SLACK, EncodedBatch
from tokenweir.gpu.modes.batch import THREADS, Batch, is_small
from tokenweir.gpu.modes.tables import ExactTables
from tokenweir.gpu.shared import constants

WALK_BYTES = 1 << 14
"""The most bytes that one thread walks, at least: of a match of the pre-tokenizer, or between two sure boundaries. A walk
takes microseconds a kilobyte, in which the rest of the device waits.
"""

MERGED_BYTES = 1 << 10
"""The default of `max_bytes` of modes that merge. A block of threads takes a pass for each merge in the worst case, so that
a longer part costs the whole batch more on the device than its document does on the CPU.
"""

MERGED_LEAST = 64
"""The least `max_bytes` of modes that merge."""

MAX_PIECE_BYTES = 1 << 24
"""The greatest `max_bytes` of modes that merge, since every merging block has 16 bytes of scratch for a byte."""

LEFT_BYTES = 1 << 16
"""The most bytes of a batch's longer parts, which the CPU encodes alone; with more, it encodes their documents."""

BY_WARPS_BYTES = 1 << 18
"""The most bytes of a batch whose pieces are all merged by warps, and none by a thread. Of a larger one the pieces are so
many that threads of their own merge them sooner, although each takes longer.
"""

LONG_WORKERS = 64
"""The most blocks that merge long pieces at the same time, if these may exceed a block's shared memory."""

_CONSTANTS = constants("encode.cu")
_WARPS, _NEAR = (constants("merge.cu")[name] for name in ("kWarps", "kNear"))
_SPAN, _SMALL_SPAN = constants("cut.cu")["kSpan"], 8  # the bytes of text that a thread cuts, of a small batch
_SMALL_WORDS = 32  # the words of a tile of encode_pieces, of a small batch
_BYTES_OF_MERGING_BLOCK = 2048  # of text: it has some dozens of short pieces to be merged, in Chinese some hundreds

REASONS = {
    _CONSTANTS["kInvalidUtf8"]: "it is not UTF-8",
    _CONSTANTS["kTooLong"]: "oversized piece",
    _CONSTANTS["kUnsupportedToken"]: "it has an added token that takes white space along or wants no word beside it",
    _CONSTANTS["kNotSurelyNfc"]: "Unicode's form C may change it",
    _CONSTANTS["kSpaceSign"]: "it has a U+2581",
    _CONSTANTS["kGuardedPiece"]: "it has user text, and the model has control tokens of its own",
    _CONSTANTS["kUnsupportedCharacter"]: "it has a character that normalizing makes several of, or may move",
}
"""The reasons why a document is refused, by the bits of `Refusal` in kernels/common/documents.cuh; of several, the
first counts.
"""


class ExactMode(ABC):
    """Exact mode for a kind of model: its tables on a device, with the launches that encode a batch to the CPU's ids.

    Attributes:
        tokenizer: The tokenizer whose ids these are; it encodes the documents that the kernels refuse.
        max_bytes: The most bytes of what one thread or block encodes; a document that needs more is refused.
        walk_bytes: The same of what one thread walks to cut the text: `max_bytes`, but at least `WALK_BYTES`.
        reasons: The reasons of refusals, as `Batch.collect` takes them.

    """

    reasons: Mapping[int, str] = REASONS
    BOUNDS: ClassVar[tuple[int, int]] = (0, (1 << 30) - 1)
    """The least and the greatest `max_bytes`."""

    def __init__(self, tokenizer: Tokenizer, device: Device, *, max_bytes: int = WALK_BYTES) -> None:
        """Copy the tables to the device; `max_bytes` is the attribute of that name.

        Raises:
            UnsupportedTokenizerError: The kernels cannot reproduce the tokenizer exactly.
            ValueError: `max_bytes` is out of range.

        """
        least, most = self.BOUNDS
        if not least <= max_bytes <= most:
            raise ValueError(f"max_bytes must be from {least} to {most}, not {max_bytes}")
        self.tokenizer = tokenizer
        self.max_bytes, self.walk_bytes = max_bytes, max(max_bytes, WALK_BYTES)
        self._device = device
        self._load()

    @abstractmethod
    def _load(self) -> None:
        """Copy the tables of the tokenizer's kind of model to the device; called once, by the constructor."""

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> EncodedBatch:
        """Encode the documents of a batch.

        Args:
            text: The documents one after the other, and `SLACK` zero bytes; uint8 on the device, at an address that is
                a multiple of 8.
            offsets: The byte at which each document begins and the last one ends; int64 on the device.
            parse_special: Whether to match added tokens; if not, text never becomes a control token.
            guards: Sorted offsets in `text` of characters that no added token may cover.

        Raises:
            ValueError: The text is empty, too long or misaligned.

        """
        return self.begin(text, offsets, parse_special=parse_special, guards=guards).collect(self.reasons)

    @abstractmethod
    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        """Launch all stages of encoding up to counting the ids; return the batch, whose ids `collect` then returns.

        The arguments are as for `encode`. Without guards, nothing is copied from or to the host.
        """


class MergingMode(ExactMode):
    """`ExactMode` for BPE: pieces are merged."""

    BOUNDS = MERGED_LEAST, MAX_PIECE_BYTES

    def __init__(
        self, tokenizer: Tokenizer, device: Device, *, max_bytes: int = MERGED_BYTES, workers: int = 512
    ) -> None:
        """Copy the tables to the device.

        Args:
            tokenizer: The tokenizer whose ids these are.
            device: The device.
            max_bytes: The most bytes of a piece, or of a part between two places that no merge crosses. The CPU encodes
                longer ones, or their documents.
            workers: The number of blocks that share the pieces queued for merging.

        Raises:
            UnsupportedTokenizerError: The kernels cannot reproduce the tokenizer exactly.
            ValueError: `max_bytes` or `workers` is out of range.

        """
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        super().__init__(tokenizer, device, max_bytes=max_bytes)
        self._workers = workers
        self._long_workers = workers if max_bytes <= _NEAR else min(workers, LONG_WORKERS)
        self._far = device.empty(4 * max_bytes * self._long_workers if max_bytes > _NEAR else 1, np.uint32)


class ByteLevelMode(MergingMode):
    """`ExactMode` for byte-level BPE."""

    def _load(self) -> None:
        self._tables = ExactTables(self.tokenizer, self._device)

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        tables, searches = self._tables, self._tables.added if parse_special else []
        bit_maps = 5 + len(searches[1:]) + len(tables.cuts)  # two more than a stage each: for cuts and lone characters
        batch = PieceBatch(self._device, text, offsets, self.walk_bytes, bit_maps)
        batch.find_added(searches, guards)
        for stage in tables.cuts[:-1]:
            batch.cut(stage)
        batch.cut(tables.cuts[-1], tables.joins)
        if tables.lengths.max(initial=0) <= self.max_bytes:  # so that no part could be a token, only a whole piece
            batch.leave(tables.encode_part)
        batch.encode(tables.bpe, self.max_bytes)
        batch.merge(tables.bpe, self.max_bytes, self._workers, self._long_workers, self._far)
        return batch.count()


class PieceBatch(Batch):
    """A batch with the launches that cut documents into pieces and encode these."""

    def __init__(self, device: Device, text: Any, offsets: Any, max_bytes: int, bit_maps: int) -> None:
        n = int(text.size) - SLACK
        self._is_small = is_small(n)
        self._by_thread = 1 if n <= BY_WARPS_BYTES else _CONSTANTS["kShortBytes"]
        longer = self._by_thread, _CONSTANTS["kMediumBytes"], MERGED_LEAST
        scratch = [
            n // 2 + 1,
            n // (_CONSTANTS["kSmallBytes"] + 1) + 1,
            *(2 * (n // (size + 1) + 1) for size in longer),
        ]
        super().__init__(device, text, offsets, max_bytes, bit_maps=bit_maps, scratch=scratch)
        places, others, *self._longer, self._room_for_left = self.scratch
        self._short = places, np.uint32(places.size), others
        self._left: Any = NULL
        self._encode_part: Callable[[str], NDArray[np.uint32]] | None = None
        self.begins = self.mark()  # of documents, and then of pieces
        self.cuts: Any = NULL

    def leave(self, encode_part: Callable[[str], NDArray[np.uint32]]) -> None:
        """Leave parts that are too long for the device to the host, instead of their documents.

        `encode_part` returns the ids of a part, then the byte of it at which each of their tokens begins; shape (2, n).
        """
        self._encode_part = encode_part
        self._left = self._room_for_left

    def encode_left(self, n: int, refusals: NDArray[Any]) -> None:
        begins, sizes = self.device.to_host(self._left[: 2 * n]).reshape(n, 2).T.astype(np.int64)
        documents = np.searchsorted(self.device.to_host(self.offsets), begins, "right") - 1
        own = refusals[documents] == 0
        if sizes[own].sum() > LEFT_BYTES:
            self.refusals[np.unique(documents[own])] = _CONSTANTS["kTooLong"]
            self.counters[_CONSTANTS["kRefusals"]] = 1
        else:
            for begin, size in zip(begins[own].tolist(), sizes[own].tolist(), strict=True):
                self._put(begin, self.device.to_host(self.text[begin : begin + size]).tobytes().decode())
        self.counters[_CONSTANTS["kBlocksDone"]] = 0
        self.count()

    def _put(self, begin: int, part: str) -> None:
        """Encode a part of the text that begins at a byte, and put its ids where they belong."""
        assert self._encode_part is not None
        ids, places = self._encode_part(part)
        there = (self.device.to_device(array) for array in (places + np.uint32(begin), ids))
        self.launch("put_ids", -(-len(ids) // THREADS), *there, np.uint32(len(ids)), self.ids, self.tokens)

    def cut(self, stage: Any, joins: Any = NULL) -> None:
        """Cut the pieces found so far (at first, whole documents) by one stage of the pre-tokenizer.

        Args:
            stage: Its struct `CutTables` of cut.cu, on the device.
            joins: The model's struct `JoinTables` of cut.cu, on the device, to find the cuts within pieces too.

        """
        begins, self.begins = self.begins, self.bit_map()
        if joins is not NULL:
            self.cuts = self.bit_map()
        of_tile = THREADS * (_SMALL_SPAN if self._is_small else _SPAN)
        given = stage, *self.source, begins, self.taken, np.uint32(of_tile), self.max_bytes
        found = self.begins, joins, self.cuts, *self.refusing
        self.launch("cut_pieces", -(-int(self.n) // of_tile), *given, *found)

    def encode(self, bpe: Any, max_bytes: int) -> None:
        """Encode the pieces and parts that are tokens, and queue the others for `merge`.

        Args:
            bpe: The model's struct `DeviceBpe` of encode.cu, on the device.
            max_bytes: The most bytes of a part; documents with a longer one are refused.

        """
        self.lones = bpe, self.bit_map()
        words = _SMALL_WORDS if self._is_small else THREADS
        given = bpe, *self.source, self.begins, self.cuts, self.taken
        sizes = np.uint32(words), np.uint32(self._by_thread), np.uint32(max_bytes)
        found = self.ids, self.tokens, self.lones[1], *self._short, *self._longer, self._left, *self.refusing
        self.launch("encode_pieces", -(-self.n_words // words), *given, *sizes, *found)

    def merge(self, bpe: Any, max_bytes: int, workers: int, long_workers: int, far: Any) -> None:
        """Merge the pieces that `encode` queued.

        Args:
            bpe: As for `encode`.
            max_bytes: As for `encode`.
            workers: The most blocks of threads; a small batch gets fewer.
            long_workers: The same of blocks for long pieces.
            far: Scratch memory on the device for these, if `max_bytes` exceeds their shared memory.

        """
        if self._by_thread > 1:
            blocks = min(2 * workers, -(-int(self.n) // _BYTES_OF_MERGING_BLOCK))
            given = bpe, self.text, *self._short, self.counters
            self.launch("merge_short_pieces", blocks, *given, self.ids, self.tokens)
        medium, long_pieces = (pieces.size // 2 for pieces in self._longer)  # at most
        for_long = min(long_workers, long_pieces)
        for_medium = min(workers, -(-medium // _WARPS))
        given = bpe, self.text, *self._longer, np.uint32(for_long), np.uint32(max_bytes), far, self.counters
        self.launch("merge_pieces", for_long + for_medium, *given, self.ids, self.tokens)
