"""Exact mode for Unigram: SentencePiece's models, and HuggingFace's by words, as T5 and XLM-R have it.

The text is normalized in place, character by character. SentencePiece takes all text between added tokens as one piece,
so that scores add up across words; HuggingFace takes each word as a piece. A warp walks a piece.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.components.added_tokens import own_control_texts
from tokenweir.encode.components.normalize import charsmap_of
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import Metaspace, Precompiled, SentencePieceNormalizer, WhitespaceSplit
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.gpu.device import Device
from tokenweir.gpu.modes.batch import THREADS, Batch
from tokenweir.gpu.modes.exact import ExactMode
from tokenweir.gpu.modes.spacing import EACH, NOWHERE, SIGN, begin_texts, check_added, with_spaces
from tokenweir.gpu.modes.tables import SearchTables, paged
from tokenweir.gpu.shared import constants, fields

_CONSTANTS, _NORMAL = constants("unigram.cu"), constants("normalize.cu")


class UnigramMode(ExactMode):
    """`ExactMode` for Unigram. A document with a piece of more than `max_bytes` bytes is refused."""

    def _load(self) -> None:
        self._tables = _UnigramTables(self.tokenizer, self._device)

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        tables, searches = self._tables, self._tables.added if parse_special else []
        prefix = tables.form.prefix
        text, offsets, guards = with_spaces(self._device, prefix, text, offsets, guards)
        double = tables.sums == np.float64
        scratch = [int(text.size), int(text.size) * (1 + double)]
        batch = Batch(self._device, text, offsets, self.max_bytes, bit_maps=5 + len(searches[1:]), scratch=scratch)
        if guards is not None and tables.guards_pieces:
            batch.refuse_guarded(guards)
        begins = batch.mark()
        batch.find_added(searches, guards)
        begin_texts(batch, prefix, begins)
        normal, ends = self._device.empty(int(text.size), np.uint8), batch.bit_map()
        given = tables.characters, *batch.source, begins, batch.taken, np.uint32(tables.form.rules), batch.max_bytes
        batch.launch("normalize_texts", -(-batch.n_words // THREADS), *given, normal, ends, *batch.refusing)
        control = "kLeftOut" if not parse_special else "kTaken" if guards is None else "kRefused"
        starts, sums = batch.scratch
        kernel, blocks = "encode_unigram64" if double else "encode_unigram32", -(-int(batch.n) // _CONSTANTS["kTile"])
        walked = tables.model, normal, *batch.source[1:], ends, np.uint32(_CONSTANTS[control]), batch.max_bytes
        lattice = sums.view(tables.sums), self._device.zeros(int(batch.n), np.uint32), starts
        batch.launch(kernel, blocks, *walked, *lattice, batch.ids, batch.tokens, *batch.refusing)
        return batch.count()


class Form(NamedTuple):
    """The rules by which a Unigram model's text is normalized.

    Attributes:
        charsmap: SentencePiece's precompiled character map; if empty, no character is replaced.
        huggingface: Whether the map is applied as HuggingFace does, and all white space counts as spaces.
        rules: The treatment of spaces: bits of the enumeration `Rule` of kernels/normalize.cu.
        prefix: The texts that get a space before them: a value of the enumeration `Prefix` of kernels/spaces.cu.
        user_defined: User-defined pieces, which are not normalized.

    """

    charsmap: bytes
    huggingface: bool
    rules: int
    prefix: int
    user_defined: tuple[str, ...] = ()


def form_of(tokenizer: Tokenizer) -> Form:
    """Derive the rules of normalization from a tokenizer's normalizer and pre-tokenizer.

    Raise `UnsupportedTokenizerError` for components that the kernels do not reproduce.
    """
    spec, words = tokenizer.spec, _NORMAL["kCollapses"] | _NORMAL["kWords"]
    match list(parts(spec.normalizer)), list(parts(spec.pre_tokenizer)):
        case [SentencePieceNormalizer(escape_whitespaces=True, suffix=False) as text], [] if (
            text.add_dummy_prefix or not text.remove_extra_whitespaces
        ):
            rules = _NORMAL["kCollapses"] * text.remove_extra_whitespaces
            return Form(text.charsmap, False, rules, EACH if text.add_dummy_prefix else NOWHERE, text.user_defined)
        case [], [WhitespaceSplit(), Metaspace(replacement="\u2581", prepend_scheme="always")]:
            return Form(b"", True, words, EACH)
        case [Precompiled(charsmap)], [WhitespaceSplit(), Metaspace(replacement="\u2581", prepend_scheme="always")]:
            return Form(charsmap_of(charsmap), True, words, EACH)
        case _:
            raise UnsupportedTokenizerError(
                f"exact mode: {spec.normalizer!r:.200} and {spec.pre_tokenizer!r:.200} before Unigram"
            )


class _UnigramTables(SearchTables):
    """The tables of added tokens, of normalization, and of the model.

    Attributes:
        form: The rules of normalization.
        characters: The struct `CharacterMap` of normalize.cu, on the device.
        model: The struct `UnigramTables` of unigram.cu, on the device.
        sums: The numpy type of scores and their sums: float32 or float64.
        guards_pieces: Whether some of the model's own pieces are control tokens, which user text must not become.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device) -> None:
        super().__init__(tokenizer, device)
        self.form = form_of(tokenizer)
        if core_of(tokenizer).normalized.tokens:
            raise UnsupportedTokenizerError("exact mode: added tokens of normalized text before Unigram")
        check_added(self.form.prefix, [content for search in self.searches for content, _, _ in search.tokens])
        self.guards_pieces = bool(own_control_texts(tokenizer.spec.model, tokenizer.added_tokens))
        entries = _entries(self.form.charsmap, self.form.huggingface)
        _check_user_defined(entries, self.form.user_defined)
        pages, index = paged(entries.reshape(-1, 256))
        self.characters = self._struct(fields("normalize.cu", "CharacterMap"), {"index": index, "pages": pages})
        model = core_of(tokenizer).model
        if not isinstance(model, _core.HuggingFaceUnigram | _core.SentencePieceUnigram):
            raise UnsupportedTokenizerError(f"exact mode: the model is not Unigram: {tokenizer.spec.model!r:.60}")
        try:
            units, root, scores, byte_ids, control, unknown = _core.device_unigram(model)
        except UnsupportedTokenizerError as error:
            raise UnsupportedTokenizerError(f"exact mode: {error}") from None
        self.sums = scores.dtype
        self.model = self._struct(
            fields("unigram.cu", "UnigramTables"),
            {
                "units": units,
                "scores": scores,
                "byte_ids": byte_ids,
                "control": control,
                "root": root,
                "n_ids": len(scores) - 1,
                "unknown": unknown,
            },
        )


@lru_cache(maxsize=4)
def _entries(charsmap: bytes, huggingface: bool) -> NDArray[np.uint32]:
    """Return the replacement of each character by a character map, indexed by code point, as kernels read it.

    `huggingface` applies the map as HuggingFace does. The result is cached.
    """
    entries = _core.device_characters(charsmap, huggingface)
    entries.flags.writeable = False
    return entries


def _check_user_defined(entries: NDArray[np.uint32], pieces: Iterable[str]) -> None:
    """Raise `UnsupportedTokenizerError` for a user-defined piece with a character that normalization replaces.

    Args:
        entries: The replacement of each character, from `_entries`.
        pieces: The user-defined pieces, which are themselves not normalized.

    """
    for piece in pieces:
        for character in piece.replace(SIGN, ""):
            itself = character.encode().ljust(4, b"\xff")
            if character == " " or entries[ord(character)] != int.from_bytes(itself, "little"):
                raise UnsupportedTokenizerError(
                    f"exact mode: the user-defined piece {piece!r:.60}, which would be normalized elsewhere"
                )
