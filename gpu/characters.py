"""Exact mode for BPE of characters with byte fallback, as Llama 2, Mistral and Gemma have it.

Such a model gets whole documents as one piece, in which a U+2581 stands for each space and before the text. On the device
spaces stay what they are, and the tables have them for U+2581. The text is cut where no token crosses, as on the CPU, and
the parts are encoded by the kernels of byte-level BPE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import Metaspace, Normalizer, Pattern, Prepend, PreTokenizer, Replace
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.batch import THREADS
from tokenweir.gpu.device import Device
from tokenweir.gpu.encoded import SLACK, Encoded
from tokenweir.gpu.exact import LONG_WORKERS, PIECE_BYTES, REASONS, Passage, checked_sizes
from tokenweir.gpu.shared import constants, fields
from tokenweir.gpu.tables import SearchTables, bpe_fields

SIGN = "\u2581"

_CONSTANTS = constants("characters.cu")
_NOWHERE, _EACH, _FIRST = (_CONSTANTS[f"k{where}"] for where in ("Nowhere", "Each", "First"))


class CharacterBatch:
    """A tokenizer's tables on a device, and the launches that encode a batch by them.

    Attributes:
        tokenizer: The tokenizer whose ids these are, for the documents that are left out.
        max_bytes: Bytes of a text that cannot be cut, beyond which a document is left out.

    """

    def __init__(
        self, tokenizer: Tokenizer, device: Device, *, max_bytes: int = PIECE_BYTES, workers: int = 512
    ) -> None:
        """Copy the tables to the device; the arguments are those of `ExactBatch`, but for a tokenizer of this kind.

        Raises:
            UnsupportedTokenizerError: For what the kernels cannot do exactly.
            ValueError: `max_bytes` or `workers` is out of range.

        """
        checked_sizes(max_bytes, workers)
        self.tokenizer = tokenizer
        self.max_bytes = max_bytes
        self._device = device
        self._workers = workers
        self._tables = _Tables(tokenizer, device)
        self._far = device.empty(4 * max_bytes * min(workers, LONG_WORKERS), np.uint32)

    def encode(
        self, text: Any, offsets: Any, *, parse_special: bool = True, guards: NDArray[np.int64] | None = None
    ) -> Encoded:
        """Encode the documents of a batch; see `ExactBatch.encode`."""
        tables, searches = self._tables, self._tables.added if parse_special else []
        if tables.prefix != _NOWHERE:
            if guards is not None:
                before = np.searchsorted(self._device.to_host(offsets), guards, "right")
                guards = guards + before  # a byte for each document that has begun
            text, offsets = self._spaced(text, offsets)
        batch = Passage(self._device, text, offsets, self.max_bytes, bit_maps=5 + len(searches[1:]))
        batch.find_added(searches, guards)
        if tables.prefix != _NOWHERE:
            taken, batch.taken = batch.taken, batch.bit_map()
            by_words = text, batch.n, np.uint32(tables.prefix), batch.begins, taken, batch.taken
            batch.launch("begin_texts_by_spaces", -(-batch.n_words // THREADS), *by_words)
        begins, batch.begins = batch.begins, batch.bit_map()
        batch.launch(
            "cut_characters",
            -(-batch.n_words // THREADS),
            tables.cuts,
            text,
            batch.n,
            offsets,
            batch.n_documents,
            begins,
            batch.taken,
            batch.begins,
            batch.refusals,
            batch.counters,
        )
        batch.encode(tables.bpe)
        batch.merge(tables.bpe, self._workers, self._far)
        return batch.collect(REASONS)

    def _spaced(self, text: Any, offsets: Any) -> tuple[Any, Any]:
        """The batch with a byte before each document."""
        n, n_documents = int(text.size) - SLACK, int(offsets.size) - 1
        spaced = self._device.zeros(n + n_documents + SLACK, np.uint8)
        moved = self._device.empty(n_documents + 1, np.int64)
        blocks = max(-(-n // (THREADS * _CONSTANTS["kSpan"])), -(-n_documents // THREADS))
        given = text, np.uint32(n), offsets, np.uint32(n_documents)
        self._device.launch("space_documents", blocks, THREADS, *given, spaced, moved)
        return spaced, moved


class _Tables(SearchTables):
    """The tables of the added tokens, of the model, and of where a text may be cut.

    Attributes:
        prefix: `Prefix` of kernels/characters.cu.
        bpe: `DeviceBpe`.
        cuts: `CharacterTables`.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device) -> None:
        super().__init__(tokenizer, device)
        model, spec = tokenizer.core.model, tokenizer.spec
        if not isinstance(model, _core.CharacterBpe):
            raise UnsupportedTokenizerError(f"exact mode: the model is not BPE of characters: {spec.model!r:.60}")
        self.prefix, spaces = spacing(spec.normalizer, spec.pre_tokenizer)
        if tokenizer.core.normalized.tokens:
            raise UnsupportedTokenizerError("exact mode: added tokens of normalized text before BPE of characters")
        contents = [content for search in self.searches for content, _, _ in search.tokens]
        if self.prefix == _EACH and min(map(len, contents), default=2) < 2:
            raise UnsupportedTokenizerError("exact mode: an added token of one byte, where a space follows it")
        if self.prefix != _NOWHERE and any(content.startswith(b" ") for content in contents):
            raise UnsupportedTokenizerError("exact mode: an added token that begins with the space before a text")
        try:
            tables = _core.DeviceTables(model, spaces)
        except UnsupportedTokenizerError as error:
            raise UnsupportedTokenizerError(f"exact mode: {error}") from None
        self.bpe = self._struct(fields("encode.cu", "DeviceBpe"), bpe_fields(tables))
        near, others, shift = _core.split_pairs(model)
        values: Mapping[str, NDArray[Any] | int] = {
            "pairs.near": near,
            "pairs.known": 0,
            "pairs.others": others,
            "pairs.others_shift": shift,
            "space": ord(SIGN if spaces else " "),
        }
        self.cuts = self._struct(fields("characters.cu", "CharacterTables"), values)


def spacing(normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> tuple[int, bool]:
    """Before which texts a space stands (`Prefix`), and whether spaces stand for U+2581.

    Raises:
        UnsupportedTokenizerError: The components do something else.

    """
    match list(parts(normalizer)), list(parts(pre_tokenizer)):
        case [], []:
            return _NOWHERE, False
        case [Replace(pattern=Pattern(String=" "), content="\u2581")], []:
            return _NOWHERE, True
        case [Prepend("\u2581"), Replace(pattern=Pattern(String=" "), content="\u2581")], []:
            return _EACH, True
        case [], [Metaspace(replacement="\u2581", prepend_scheme="never", split=False)]:
            return _NOWHERE, True
        case [], [Metaspace(replacement="\u2581", prepend_scheme="first", split=False)]:
            return _FIRST, True
        case _:
            raise UnsupportedTokenizerError(
                f"exact mode: {normalizer!r:.200} and {pre_tokenizer!r:.200} before BPE of characters"
            )
