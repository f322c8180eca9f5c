"""Exact mode for BPE of characters with byte fallback, by merges or by scores, as Llama 2, Mistral and Gemma have it.

Such a model gets whole documents as one piece, in which a U+2581 stands for each space and before the text. On the
device spaces are kept, and the tables have a space in place of U+2581. The text is cut where no token crosses, as on
the CPU, and the pieces are encoded by the kernels of byte-level BPE. A SentencePiece model's user-defined pieces are
searched for like added tokens, in the text between these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.components.added_tokens import own_control_texts
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    Metaspace,
    Model,
    Normalizer,
    Pattern,
    Prepend,
    PreTokenizer,
    Replace,
    SentencePiece,
    SentencePieceNormalizer,
)
from tokenweir.encode.spec.models import USER_DEFINED
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.gpu.device import Device
from tokenweir.gpu.modes.batch import THREADS, Batch
from tokenweir.gpu.modes.exact import MergingMode, PieceBatch
from tokenweir.gpu.modes.spacing import EACH, FIRST, NOWHERE, SIGN, begin_texts, check_added, with_spaces
from tokenweir.gpu.modes.tables import SearchTables, bpe_fields
from tokenweir.gpu.shared import fields


class CharacterMode(MergingMode):
    """`ExactMode` for BPE of characters."""

    def _load(self) -> None:
        self._tables = _CharacterTables(self.tokenizer, self._device)

    def begin(self, text: Any, offsets: Any, *, parse_special: bool, guards: NDArray[np.int64] | None) -> Batch:
        tables, searches = self._tables, self._tables.added if parse_special else []
        text, offsets, guards = with_spaces(self._device, tables.prefix, text, offsets, guards)
        bit_maps = 6 + len(searches[1:]) + len(tables.user_defined)
        batch = PieceBatch(self._device, text, offsets, self.walk_bytes, bit_maps)
        if guards is not None and tables.guards_pieces:
            batch.refuse_guarded(guards)
        batch.find_added(searches, guards)
        begin_texts(batch, tables.prefix, batch.begins)
        batch.find_added(tables.user_defined, None, earlier=batch.taken)
        begins, batch.begins = batch.begins, batch.bit_map()
        given = tables.cuts, *batch.source, begins, batch.taken
        batch.launch("cut_characters", -(-batch.n_words // THREADS), *given, batch.begins, *batch.refusing)
        batch.encode(tables.bpe, self.max_bytes)
        batch.merge(tables.bpe, self.max_bytes, self._workers, self._long_workers, self._far)
        return batch.count()


class _CharacterTables(SearchTables):
    """The tables of added tokens, of the model, and of its split points.

    Attributes:
        prefix: The texts that get a space before them: a value of the enumeration `Prefix` of kernels/spaces.cu.
        user_defined: A list with the struct `AddedTokenTables` of the user-defined pieces; empty if there are no such
            pieces.
        guards_pieces: Whether some of the model's own pieces are control tokens, which user text must not become.
        bpe: The struct `DeviceBpe` of the model, on the device.
        cuts: The struct `CharacterTables` of the split points, on the device.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device) -> None:
        super().__init__(tokenizer, device)
        spec = tokenizer.spec
        self.prefix, spaces = spacing(spec.normalizer, spec.pre_tokenizer)
        if core_of(tokenizer).normalized.tokens:
            raise UnsupportedTokenizerError("exact mode: added tokens of normalized text before BPE of characters")
        check_added(self.prefix, [content for search in self.searches for content, _, _ in search.tokens])
        pieces = _user_defined(spec.model)
        self.user_defined = [self._added_token_tables(_core.AddedTokens(pieces, []))] if pieces else []
        self.guards_pieces = bool(own_control_texts(spec.model, tokenizer.added_tokens))
        tables = _device_tables(tokenizer, spaces)
        self.bpe = self._struct(fields("encode.cu", "DeviceBpe"), bpe_fields(tables))
        common, others, shift = _core.split_point_table(core_of(tokenizer).model)
        values: Mapping[str, NDArray[Any] | int] = {
            "split_points.common": common,
            "split_points.known": 0,
            "split_points.others": others,
            "split_points.others_shift": shift,
            "space": ord(SIGN if spaces else " "),
        }
        self.cuts = self._struct(fields("characters.cu", "CharacterTables"), values)


def _user_defined(model: Model) -> list[tuple[str, int, bool, bool, bool]]:
    """Return the user-defined pieces of a SentencePiece model, with spaces in place of U+2581.

    Each is (content, id, False, False, False), as `AddedTokens` takes tokens. The list is empty for a model of another
    kind. Raise `UnsupportedTokenizerError` if a piece already has a space.
    """
    if not isinstance(model, SentencePiece):
        return []
    found = [(model.pieces[i], i) for i, piece_type in enumerate(model.types) if piece_type == USER_DEFINED]
    if any(" " in piece for piece, _ in found):
        raise UnsupportedTokenizerError("exact mode: a user-defined piece with a space")
    return [(piece.replace(SIGN, " "), i, False, False, False) for piece, i in found]


def _device_tables(tokenizer: Tokenizer, spaces: bool) -> _core.DeviceTables:
    model, spec = core_of(tokenizer).model, tokenizer.spec.model
    try:
        if isinstance(model, _core.CharacterBpe):
            return _core.DeviceTables(model, spaces)
        if isinstance(model, _core.SentencePieceBpe) and isinstance(spec, SentencePiece):
            return _core.DeviceTables(model, list(spec.pieces), spaces)
    except UnsupportedTokenizerError as error:
        raise UnsupportedTokenizerError(f"exact mode: {error}") from None
    raise UnsupportedTokenizerError(f"exact mode: the model is not BPE of characters: {spec!r:.60}")


def spacing(normalizer: Normalizer | None, pre_tokenizer: PreTokenizer | None) -> tuple[int, bool]:
    """Derive the treatment of spaces from a tokenizer's normalizer and pre-tokenizer.

    Returns:
        Which texts get a space before them, as a value of the enumeration `Prefix` of kernels/spaces.cu; and whether
        spaces become U+2581 before encoding.

    Raises:
        UnsupportedTokenizerError: The components do anything else.

    """
    match list(parts(normalizer)), list(parts(pre_tokenizer)):
        case [], []:
            return NOWHERE, False
        case [Replace(pattern=Pattern(String=" "), content="\u2581")], []:
            return NOWHERE, True
        case [Prepend("\u2581"), Replace(pattern=Pattern(String=" "), content="\u2581")], []:
            return EACH, True
        case [], [Metaspace(replacement="\u2581", prepend_scheme="never", split=False)]:
            return NOWHERE, True
        case [], [Metaspace(replacement="\u2581", prepend_scheme="first", split=False)]:
            return FIRST, True
        case [
            SentencePieceNormalizer(
                charsmap=b"", remove_extra_whitespaces=False, escape_whitespaces=True, suffix=False
            ) as sentencepiece
        ], []:
            return EACH if sentencepiece.add_dummy_prefix else NOWHERE, True
        case _:
            raise UnsupportedTokenizerError(
                f"exact mode: {normalizer!r:.200} and {pre_tokenizer!r:.200} before BPE of characters"
            )
