"""The stages that all modes share: a batch's bit maps, the search for added tokens, and the collection of the ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tokenweir.gpu.device import NULL, Device
from tokenweir.gpu.encoded import SLACK, EncodedBatch
from tokenweir.gpu.shared import constants

MAX_BYTES = (1 << 31) - (1 << 20)
"""The most bytes of a batch: places in it are 32-bit numbers."""

THREADS = constants("encode.cu")["kThreads"]
"""The number of threads in a block, unless a mode says otherwise."""

TILE = constants("encode.cu")["kTile"]
"""The bytes of text that a block handles in all but small batches: 32 for each thread, which are a word of a bit map."""

SMALL_BYTES = 1 << 20
"""The most bytes of a small batch. It takes as long as its longest thread, so more blocks and warps share its work."""

COLLECTING_BLOCKS = 8
"""The blocks that collect the ids of a tile of a small batch."""

_COUNTERS = constants("common/documents.cuh")
_N_COUNTERS = _COUNTERS["kCounters"]


def is_small(n: int) -> bool:
    """Return whether a batch of `n` bytes is small."""
    return n <= SMALL_BYTES


class Batch:
    """The text of a batch on a device, with the results of the kernels so far.

    Attributes:
        text: The documents, one after the other; uint8.
        offsets: The byte at which each document begins and the last one ends; int64.
        max_bytes: The most bytes that one thread or block walks; a document that needs more is refused.
        taken: A bit map of the bytes of text that matched added tokens cover.
        tokens: A bit map of the bytes of text at which a token begins.
        ids: For each byte of text a word; the id of a token is in the word of its first byte.
        scratch: Arrays of 32-bit words for a mode's own kernels.
        source: The arguments by which kernels read the documents: `text`, `n`, `offsets`, `n_documents`.
        refusing: Those by which they refuse some of them: `refusals`, `counters`.
        lones: A struct `DeviceBpe` and a bit map of the tokens whose ids are its ids of characters, which `ids` lacks; or
            two null pointers.
        refusals: For each document the reasons why it is refused, as bits of `Refusal` in
            kernels/common/documents.cuh; 0 if it is not.
        counters: The counters of the batch, by the enumeration `Counter` in the same header.

    """

    def __init__(
        self, device: Device, text: Any, offsets: Any, max_bytes: int, *, bit_maps: int = 2, scratch: Sequence[int] = ()
    ) -> None:
        """Take a batch, and allocate its bit maps and scratch arrays.

        Args:
            text: The documents and `SLACK` zero bytes, at an address that is a multiple of 8.
            bit_maps: The number of bit maps, including `taken` and `tokens`.
            scratch: The sizes of the scratch arrays, in 32-bit words.

        Raises:
            ValueError: The text is empty, too long or misaligned.

        """
        n, n_documents = int(text.size) - SLACK, int(offsets.size) - 1
        if not 0 < n <= MAX_BYTES:
            raise ValueError(f"a batch of {n} bytes; 1 to {MAX_BYTES} are possible")
        if device.address(text) % 8:
            raise ValueError("the text of a batch must begin at a multiple of 8")
        self.device = device
        self.n_words, self.n_tiles = -(-n // 32), -(-n // TILE)
        self.text, self.n, self.max_bytes = text, np.uint32(n), np.uint32(max_bytes)
        self.offsets, self.n_documents = offsets, np.uint32(n_documents)
        self.source = self.text, self.n, self.offsets, self.n_documents
        zeros = device.words([_N_COUNTERS + n_documents, *[self.n_words] * bit_maps], zero=True)
        self._report, self.taken, self.tokens, *self._bit_maps = zeros
        self._coming: Callable[[], NDArray[Any]] | None = None
        self.refusing = self.refusals, self.counters = self._report[_N_COUNTERS:], self._report[:_N_COUNTERS]
        some = device.words([n, self.n_words, self.n_tiles, *scratch])
        self.ids, self._before, self._tiles, *self.scratch = some
        self.lones: tuple[Any, Any] = (NULL, NULL)

    def mark(self) -> Any:
        """Return a bit map of the bytes at which documents begin."""
        begins = self.bit_map()
        blocks = -(-int(self.n_documents) // THREADS)
        self.launch("mark_documents", blocks, self.text, self.offsets, self.n_documents, begins, *self.refusing)
        return begins

    def find_added(self, searches: Sequence[Any], guards: NDArray[np.int64] | None, *, earlier: Any = NULL) -> None:
        """Find the added tokens in the text by each search in turn, and write their ids.

        A search skips the bytes that tokens of earlier searches cover.

        Args:
            searches: The structs `AddedTokenTables` of added_tokens.cu, one for each search.
            guards: Sorted offsets in `text` of characters that no added token may cover, or None.
            earlier: A bit map of further bytes that all searches skip.

        """
        places, n_guards = (NULL, 0) if guards is None else (self.device.to_device(guards), guards.size)
        blocks = -(-int(self.n) // (constants("added_tokens.cu")["kBytes"] * THREADS))
        for search in searches:
            if earlier is not NULL:
                self.taken = self.bit_map()
                self.taken[:] = earlier
            skipped = places, np.uint32(n_guards), earlier
            found = self.taken, self.ids, self.tokens, *self.refusing
            self.launch("find_added_tokens", blocks, search, *self.source, *skipped, self.max_bytes, *found)
            earlier = self.taken

    def refuse_guarded(self, guards: NDArray[np.int64]) -> None:
        """Refuse the documents that have guarded characters, given by their sorted offsets in `text`.

        For models some of whose own pieces are control tokens: the kernels do not keep these from guarded characters.
        """
        guarded = np.searchsorted(self.device.to_host(self.offsets), guards, "right") - 1
        self.refusals[np.unique(guarded)] = _COUNTERS["kGuardedPiece"]
        self.counters[_COUNTERS["kRefusals"]] = 1

    def count(self) -> Self:
        """Count the ids of all documents on the device, and return this object. Nothing is copied to the host."""
        given = np.uint32(self.n_words), self.offsets, self.n_documents, self.tokens
        self.launch("count_ids", self.n_tiles, *given, self._before, self._tiles, *self.refusing)
        return self

    def send_report(self) -> None:
        """Begin to copy to the host what `collect` needs, so that it need not wait for later batches."""
        self._coming = self.device.fetch(self._report)

    def compact(self, n_documents: int, ids: Any = NULL, offsets: Any = NULL, given: Any = NULL) -> None:
        """Compact the ids into one array.

        Args:
            n_documents: The number of documents.
            ids: The array of the ids.
            offsets: The array of the documents' offsets in it.
            given: Instead of these three, an array of the device that has the addresses of `ids` and `offsets`, the number
                of documents, and the size of `ids` when the kernel runs; then `n_documents` is the greatest. If `ids` is
                too small, nothing is written.

        """
        share = COLLECTING_BLOCKS if is_small(int(self.n)) else 1
        blocks = self.n_tiles * share + n_documents // THREADS + 1
        sizes = self.n, np.uint32(self.n_tiles), np.uint32(share)
        counted = self.offsets, np.uint32(n_documents), self.tokens, self._before, self._tiles
        found = self.ids, self.text, *self.lones, self.counters
        self.launch("collect_ids", blocks, *sizes, *counted, *found, ids, offsets, given)

    def collect(
        self, reasons: Mapping[int, str], n_documents: int | None = None, compacted: tuple[Any, Any] | None = None
    ) -> EncodedBatch:
        """Compact the ids into one array, and copy the reasons of refused documents to the host.

        Args:
            reasons: The text of each reason, by its bit in `refusals`. A document with several gets the first.
            n_documents: The number of documents to return, if all after them are padding without ids; None returns all.
            compacted: The arrays of ids and offsets that `compact` was given; None allocates them.

        """
        n = int(self.n_documents) if n_documents is None else n_documents
        report = self._coming() if self._coming else self.device.to_host(self._report[: _N_COUNTERS + n])
        if left := int(report[_COUNTERS["kLeftPieces"]]):
            self.encode_left(left, report[_N_COUNTERS:])
            report = self.device.to_host(self._report[: _N_COUNTERS + n])
        counters, refusals = report[:_N_COUNTERS].tolist(), report[_N_COUNTERS : _N_COUNTERS + n]
        n_ids = counters[_COUNTERS["kIds"]]
        if compacted and not left and n_ids <= compacted[0].size:
            ids, offsets = compacted[0][:n_ids], compacted[1]
        else:
            ids, offsets = self.device.empty(n_ids, np.int32), self.device.empty(n + 1, np.int64)
            self.compact(n, ids, offsets)
        if not counters[_COUNTERS["kRefusals"]]:
            return EncodedBatch(ids, offsets, np.zeros(0, np.int64), ())
        refused = np.flatnonzero(refusals)
        found_reasons = (
            next(reason for bit, reason in reasons.items() if bits & bit) for bits in refusals[refused].tolist()
        )
        return EncodedBatch(ids, offsets, refused, tuple(found_reasons))

    def encode_left(self, n: int, refusals: NDArray[Any]) -> None:
        """Have the host encode the parts that the kernels left to it, and count the ids again.

        Args:
            n: The number of parts.
            refusals: `refusals`, on the host.

        """
        raise NotImplementedError

    def bit_map(self) -> Any:
        """Return an unused bit map of the text's bytes, all zeros."""
        return self._bit_maps.pop()

    def launch(self, kernel: str, blocks: int, *arguments: Any) -> None:
        """Launch a kernel with blocks of `THREADS` threads."""
        self.device.launch(kernel, blocks, THREADS, *arguments)
