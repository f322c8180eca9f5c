"""BlockBPE (You, 2025): documents are not pre-tokenized; each is merged as a whole by one block of threads.

It is for comparison with the paper, and for models that were trained on such ids. The ids are not those of the
tokenizer, whose pattern is ignored, but those of `unsplit(tokenizer)`. kernels/blockbpe.cu explains the algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    BPE,
    ByteLevel,
    Digits,
    Punctuation,
    RankBPE,
    Split,
)
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, EncodedBatch
from tokenweir.gpu.modes import exact
from tokenweir.gpu.modes.batch import Batch
from tokenweir.gpu.modes.tables import ModelTables
from tokenweir.gpu.shared import constants

DOCUMENT_BYTES = 1 << 16
"""The default of `max_bytes`. It bounds the time of a document, which grows with the square of its length."""

_UNSUPPORTED_TOKEN = constants("blockbpe.cu")["kUnsupportedToken"]
REASONS = {
    constants("blockbpe.cu")["kTooLong"]: "longer than {max_bytes} bytes",
    _UNSUPPORTED_TOKEN: exact.REASONS[_UNSUPPORTED_TOKEN],
}
"""The reasons why a document is refused, by the bits of kernels/common/documents.cuh; of several, the first counts."""


def unsplit(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy of a tokenizer whose pre-tokenizer does not split: the text between added tokens is one piece.

    Its ids are those of BlockBPE. Raise `UnsupportedTokenizerError` unless it is byte-level BPE without a normalizer.
    """
    spec = tokenizer.spec
    if not isinstance(spec.model, BPE | RankBPE):
        raise UnsupportedTokenizerError(f"blockbpe: {type(spec.model).__name__}; only byte-level BPE is possible")
    if spec.normalizer is not None:
        raise UnsupportedTokenizerError(f"blockbpe: the normalizer {type(spec.normalizer).__name__}")
    byte_level = isinstance(spec.model, RankBPE)
    for part in parts(spec.pre_tokenizer):
        match part:
            case ByteLevel(add_prefix_space=False):
                byte_level = True
            case Split() | Digits() | Punctuation():
                pass
            case _:
                raise UnsupportedTokenizerError(f"blockbpe: the pre-tokenizer {part!r:.200}")
    if not byte_level:
        raise UnsupportedTokenizerError("blockbpe: BPE without a ByteLevel pre-tokenizer")
    model = replace(spec.model, ignore_merges=False)
    return Tokenizer(replace(spec, model=model, pre_tokenizer=ByteLevel(add_prefix_space=False, use_regex=False)))


class BlockBpeMode:
    """BlockBPE for one tokenizer: its tables on a device, with the launches that encode a batch.

    Attributes:
        tokenizer: The tokenizer whose ids these are; it encodes the documents that the kernels refuse.
        block: The number of threads in a block.
        max_bytes: The most bytes of a document; a longer one is refused.
        literal: Whether each pass over a document does one merge only, as in the paper's Algorithm 1. The ids are the
            same.

    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        device: Device,
        *,
        block: int = 256,
        max_bytes: int = DOCUMENT_BYTES,
        literal: bool = False,
    ) -> None:
        """Copy the tables to the device.

        Args:
            block: The number of threads in a block, a multiple of 32 up to 1024; the paper has 256, 512 and 1024. Long
                documents want large blocks; many documents want small ones.
            max_bytes: The most bytes of a document; a longer one is refused.
            literal: Whether each pass does one merge only, as in the paper's Algorithm 1.

        Raises:
            UnsupportedTokenizerError: The tokenizer is not byte-level BPE, or has a normalizer.
            ValueError: `block` is not such a number, or `max_bytes` is out of range.

        """
        if block not in range(32, 1025, 32):
            raise ValueError(f"block must be a multiple of 32 up to 1024, not {block}")
        if not 0 <= max_bytes < 1 << 31:
            raise ValueError(f"max_bytes must be from 0 to {(1 << 31) - 1}, not {max_bytes}")
        self.tokenizer = unsplit(tokenizer)
        self.block = block
        self.max_bytes = max_bytes
        self.literal = literal
        self._device = device
        self._tables = ModelTables(self.tokenizer, device, "blockbpe", any_bytes=True)
        self.reasons: Mapping[int, str] = {bit: reason.format(max_bytes=max_bytes) for bit, reason in REASONS.items()}

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> EncodedBatch:
        """Encode the documents of a batch.

        Args:
            text: The documents one after the other, and `SLACK` zero bytes; uint8 on the device, at an address that is
                a multiple of 8. They need not be UTF-8.
            offsets: The byte at which each document begins and the last one ends; int64 on the device.
            parse_special: Whether to match added tokens; if not, text never becomes a control token.
            guards: Sorted offsets in `text` of characters that no added token may cover.

        Raises:
            ValueError: The text is empty, too long or misaligned.

        """
        return self.begin(text, offsets, parse_special=parse_special, guards=guards).collect(self.reasons)

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        """Launch all stages of encoding up to counting the ids; the arguments are as for `encode`."""
        searches = self._tables.added if parse_special else []
        n = int(text.size) - SLACK
        batch = Batch(self._device, text, offsets, self.max_bytes, bit_maps=3 + len(searches[1:]), scratch=[n] * 4)
        batch.find_added(searches, guards)
        added, batch.tokens = batch.tokens, batch.bit_map()
        kernel = "algorithm1" if self.literal else "blockbpe"
        given = self._tables.bpe, text, offsets, batch.n_documents, batch.max_bytes, batch.taken, added
        results = *batch.scratch, batch.ids, batch.tokens, *batch.refusing
        self._device.launch(kernel, int(batch.n_documents), self.block, *given, *results)
        return batch.count()
