"""A tokenizer's tables on a device; an error names each construct that the kernels cannot do exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton
from tokenweir.encode.pattern.minimize import boundary_pairs
from tokenweir.encode.spec import NFC, Normalizer
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.tokenizer import Tokenizer, core_of
from tokenweir.gpu.device import NULL, Device
from tokenweir.gpu.shared import constants, fields
from tokenweir.gpu.structs import Structs

_CUT, _ADDED = constants("cut.cu"), constants("added_tokens.cu")

MAX_CLASSES = _CUT["kNoClass"]
"""The most classes of an automaton: a character's class takes 5 bits, whose last value means "no class"."""

MAX_CELLS = _CUT["kMaxCells"]
"""The most transitions of an automaton, since a block keeps them in shared memory; real ones have up to 400."""

_NO_ID, _LONE_BITS = (constants("encode.cu")[name] for name in ("kNone", "kIdBits"))

_CHARACTERS = 0x110000


class SearchTables(Structs):
    """The tables of added tokens.

    Attributes:
        searches: One or two matchers on the host: of the added tokens matched in raw text, and of those matched in
            normalized text. One without tokens is left out.
        added: For each matcher its struct `AddedTokenTables`, on the device.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device) -> None:
        """Copy the tables to a device."""
        super().__init__(device)
        core = core_of(tokenizer)
        self.searches = [search for search in (core.raw, core.normalized) if search.tokens]
        self.added = [self._added_token_tables(search) for search in self.searches]

    def _added_token_tables(self, search: _core.AddedTokens) -> Any:
        first = np.zeros(256, np.bool_)
        first[[content[0] for content, _, _ in search.tokens]] = True
        ids = [token_id | host_only * _ADDED["kHostOnly"] for _, token_id, host_only in search.tokens]
        units, root = search.trie
        return self._struct(
            fields("added_tokens.cu", "AddedTokenTables"),
            {
                "first": np.packbits(first, bitorder="little").view(np.uint32),
                "units": units,
                "root": root,
                "ids": np.array(ids, np.uint32),
                "longest": max(len(content) for content, _, _ in search.tokens),
            },
        )


class ModelTables(SearchTables):
    """The tables of added tokens and of byte-level BPE.

    Attributes:
        bpe: The struct `DeviceBpe` of the model, on the device.
        lengths: By id, the length of the token in bytes.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device, mode: str, *, any_bytes: bool) -> None:
        """Copy the tables that the kernels need to a device.

        Args:
            tokenizer: The tokenizer.
            device: The device.
            mode: The mode's name, with which error messages begin.
            any_bytes: Whether the kernels also encode bytes that are not UTF-8, so that every byte needs a token.

        Raises:
            UnsupportedTokenizerError: For what the kernels cannot do exactly.

        """
        super().__init__(tokenizer, device)
        self._mode = mode
        model = core_of(tokenizer).model
        if not isinstance(model, _core.Bpe):
            raise UnsupportedTokenizerError(f"{mode}: the model is not byte-level BPE: {tokenizer.spec.model!r:.60}")
        self.bpe = self._bpe(model, [token for search in self.searches for token in search.tokens], any_bytes)

    def _bpe(self, model: _core.Bpe, searched: list[tuple[bytes, int, bool]], any_bytes: bool) -> Any:
        try:
            tables = _core.DeviceTables(model, [(token_id, content) for content, token_id, _ in searched])
        except UnsupportedTokenizerError as error:
            raise UnsupportedTokenizerError(f"{self._mode}: {error}") from None
        self.lengths = tables.lengths
        missing = np.flatnonzero(tables.byte_ids == _NO_ID)
        if missing.size and any_bytes:
            raise UnsupportedTokenizerError(f"{self._mode}: a vocabulary without a token for byte {missing[0]}")
        return self._struct(fields("encode.cu", "DeviceBpe"), bpe_fields(tables))


def bpe_fields(tables: _core.DeviceTables) -> Mapping[str, NDArray[Any] | int]:
    """Return the values of the fields of the struct `DeviceBpe` of encode.cu, by name."""
    pairs, pieces = tables.pairs, tables.pieces
    # Bytes without a token occur only in refused documents; any one-byte token there keeps kernels inside their tables.
    any_token = tables.byte_ids[tables.byte_ids != _NO_ID][0]
    byte_ids = np.where(tables.byte_ids == _NO_ID, any_token, tables.byte_ids)
    return {
        "pieces.slots": pieces,
        "pieces.rest": tables.rest,
        "pieces.mask": len(pieces) - 1,
        "pairs": pairs,
        "pair_shift": 65 - len(pairs).bit_length(),
        "pair_mask": len(pairs) - 1,
        "merged_ids": tables.merged_ids if tables.merged_ids.size else 0,
        "merged_shift": tables.merged_shift,
        "ranks": tables.ranks if tables.ranks.size else 0,
        "byte_ids": byte_ids,
        "ascii_pairs": tables.ascii_pairs,
        "characters.entries": tables.characters,
        "n_characters": len(tables.characters),
        "lone": tables.lone if tables.lone.size else 0,
        "lone_begins": _lone_begins(tables.lone),
        "lengths": tables.lengths,
    }


def _lone_begins(lone: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return for each of an array of `LoneIds` the bytes at which its tokens begin, as bits; and `kOtherWhole`."""
    count, length, other = (
        lone >> np.uint64(shift) & np.uint64(3)
        for shift in (3 * _LONE_BITS, 2 * _LONE_BITS, constants("encode.cu")["kOtherWholeBit"])
    )
    of_two = np.array([1, 3, 5, 1], np.uint8)[length]  # the length of the first
    begins = np.where(count == 2, of_two, np.array([0, 1, 0, 7], np.uint8)[count])
    return np.where(other, begins | np.uint8(constants("encode.cu")["kOtherWhole"]), begins)


class ExactTables(ModelTables):
    """The tables of added tokens, of byte-level BPE, and of the pre-tokenizer.

    Attributes:
        cuts: For each stage of the pre-tokenizer its struct `CutTables`, on the device.
        joins: The struct `JoinTables`, on the device; a null pointer if the model has no cuts.

    """

    def __init__(self, tokenizer: Tokenizer, device: Device) -> None:
        """Copy the tables that the kernels need to a device.

        Raise `UnsupportedTokenizerError` for a tokenizer that they cannot reproduce exactly.
        """
        super().__init__(tokenizer, device, "exact mode", any_bytes=False)
        nfc = _needs_nfc(tokenizer.spec.normalizer)
        stages = core_of(tokenizer).pre_tokenizer
        if not stages.isolates or not stages.automata:
            raise UnsupportedTokenizerError(
                "exact mode: a pre-tokenizer that does more, or less, than to cut by patterns: "
                f"{tokenizer.spec.pre_tokenizer!r:.200}"
            )
        self._model = core_of(tokenizer).model
        self.joins, sides = self._join_tables(self._model)
        self._nfc_pairs = _core.nfc_pairs()
        ranks = _core.nfc_ranks() if nfc else np.zeros(_CHARACTERS, np.uint8)
        is_inert = (ranks == 0) | (ranks == _CUT["kComposed"])
        marks = np.zeros((len(stages.automata), _CHARACTERS), np.uint32)
        marks[0] = np.where(is_inert, 0, _CUT["kNotInert"])  # the first stage checks whether NFC changes the text
        marks[-1] |= sides
        self.cuts = [self._cut(*stage, ranks) for stage in zip(stages.automata, marks, strict=True)]

    def encode_part(self, part: str) -> NDArray[np.uint32]:
        """Encode a part by the CPU; return its ids, and the byte at which each of their tokens begins; shape (2, n)."""
        ids = np.array(self._model.encode(part, guarded=True)[0], np.uint32)
        ends = np.cumsum(self.lengths[ids], dtype=np.uint32)
        return np.stack((ids, ends - self.lengths[ids]))

    def _join_tables(self, model: _core.Model) -> tuple[Any, NDArray[np.uint32]]:
        """Build the struct `JoinTables`; return it, and its part of each character's entry."""
        sides = np.zeros(_CHARACTERS, np.uint32)
        if not isinstance(model, _core.Bpe) or (found := _core.byte_cut_table(model)) is None:
            return NULL, sides
        left, right, joined, n_right, pairs, pairs_shift, followers = found
        lefts, rights = left.astype(np.intp), right.astype(np.intp)
        n_left = int(lefts.max()) + 1
        bits = np.unpackbits(joined.view(np.uint8), count=n_left * n_right, bitorder="little").reshape(n_left, n_right)
        # A class becomes two, the second of ASCII characters; the last row and column are of those beyond `left`.
        known = np.ones((2 * n_left + 1, 2 * n_right + 1), np.bool_)
        known[:-1, :-1] = bits.repeat(2, axis=0).repeat(2, axis=1)
        known[1:-1:2, 1:-1:2] = True
        rows, row_of = _few_rows(known, _CUT["kMost"])
        columns, column_of = _few_rows(rows.T, _CUT["kMost"])
        is_ascii = np.arange(lefts.size) < 0x80
        sides[:] = row_of[-1] << _CUT["kRowShift"] | column_of[-1] << _CUT["kColumnShift"]
        sides[: lefts.size] = (
            row_of[2 * lefts + is_ascii] << _CUT["kRowShift"]
            | column_of[2 * rights + is_ascii] << _CUT["kColumnShift"]
            | followers.astype(np.uint32) << _CUT["kFollowersShift"]
        )
        values: Mapping[str, NDArray[Any] | int] = {
            "joined": _rows_of_bits(columns.T, _CUT["kMost"] // 32),
            "pairs": pairs,
            "pairs_shift": pairs_shift,
        }
        return self._struct(fields("cut.cu", "JoinTables"), values), sides

    def _cut(self, automaton: Automaton, marks: NDArray[np.uint32], ranks: NDArray[np.uint8]) -> Any:
        """Build the struct `CutTables` of a stage; `marks` are bits of the characters' entries besides their classes."""
        _check(automaton)
        classes = automaton.class_pages[automaton.class_index].ravel()
        boundaries = np.zeros((32, 32), np.bool_)
        pairs = boundary_pairs(automaton.transitions)
        boundaries[: len(pairs), : len(pairs)] = pairs
        return self._struct(
            fields("cut.cu", "CutTables"),
            {
                "transitions": automaton.transitions,
                "entries": classes | marks,
                "ranks": ranks,
                "pairs": self._nfc_pairs,
                "n_pairs": len(self._nfc_pairs),
                "boundaries": _rows_of_bits(boundaries, 1),
                "width": automaton.n_classes + 1,
                "n_cells": automaton.transitions.size,
            },
        )


def _needs_nfc(normalizer: Normalizer | None) -> bool:
    """Return whether the normalizer is NFC; False without a normalizer.

    Raise `UnsupportedTokenizerError` for any other normalizer.
    """
    kinds = list(parts(normalizer))
    for step in kinds:
        if not isinstance(step, NFC):
            raise UnsupportedTokenizerError(f"exact mode: the normalizer {step!r:.200}")
    return bool(kinds)


def _check(automaton: Automaton) -> None:
    """Raise `UnsupportedTokenizerError` for an automaton that kernels cannot walk, or not in linear time."""
    reason = ""
    if automaton.context is not None:
        reason = "a condition that looks further than the next character"
    elif automaton.matches_empty:
        reason = "it can match the empty string"
    elif automaton.n_classes > MAX_CLASSES:
        reason = f"{automaton.n_classes} classes of characters; at most {MAX_CLASSES} are possible"
    elif automaton.cells > MAX_CELLS:
        reason = f"{automaton.cells} transitions; at most {MAX_CELLS} are possible"
    elif automaton.in_core().may_rescan:
        reason = "its searches may fail late, again and again"
    elif not boundary_pairs(automaton.transitions).any():
        reason = "no two characters have a sure boundary between them"
    if reason:
        raise UnsupportedTokenizerError(f"exact mode: the pattern {automaton.pattern!r:.200}: {reason}")


def paged(pages: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint16]]:
    """Deduplicate the rows of an array, called pages.

    Returns:
        The distinct pages one after the other, one-dimensional; and for each row of `pages` the number of its page there.

    """
    numbers: dict[bytes, int] = {}
    index = [numbers.setdefault(page.tobytes(), len(numbers)) for page in pages]
    return np.frombuffer(b"".join(numbers), pages.dtype), np.array(index, np.uint16)


def _few_rows(matrix: NDArray[np.bool_], most: int) -> tuple[NDArray[np.bool_], NDArray[np.uint32]]:
    """Return the distinct rows of a matrix, and the number of each row among these.

    Of more than `most` distinct rows, those from the last number on share it, and have a bit where any of them has one.
    """
    rows, numbers = np.unique(matrix, axis=0, return_inverse=True)
    if len(rows) > most:
        rows[most - 1] = rows[most - 1 :].any(axis=0)
    return rows[:most], np.minimum(numbers.ravel(), most - 1).astype(np.uint32)


def _rows_of_bits(matrix: NDArray[np.bool_], words: int) -> NDArray[np.uint32]:
    """Pack each row of a matrix of booleans into `words` words: bit b of word w in row a is `matrix[a, 32 * w + b]`."""
    padded = np.zeros((len(matrix), 32 * words), np.bool_)
    padded[:, : matrix.shape[1]] = matrix
    return np.packbits(padded, bitorder="little").view(np.uint32)
