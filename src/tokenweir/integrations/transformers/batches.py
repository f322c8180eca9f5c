"""Batches for the encoding methods of `tokenizers`: ids by one call of the core, truncation, added tokens and padding."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.encoding.columns import Encoding as Columns
from tokenweir.encode.encoding.selection import Call
from tokenweir.encode.encoding.sequence_encoder import SequenceEncoder, Sequences
from tokenweir.encode.encoding.sequences import FIRST, Layout, process
from tokenweir.encode.encoding.truncation import lengths_after_truncation
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.encode.values.texts import for_core
from tokenweir.integrations.transformers.encoding import Encoding
from tokenweir.integrations.transformers.inputs import Fallback

OFF = frozenset(["", "off", "false", "f", "no", "n", "0"])
"""Values of TOKENIZERS_PARALLELISM that mean one thread."""

Truncation = Mapping[str, Any]
Ids = list[int] | NDArray[np.int32]


class BackendEncoder(NamedTuple):
    """Encoder of batches for one state of a `tokenizers.Tokenizer`.

    Attributes:
        tokenizer: tokenweir's tokenizer, built from that state.
        sequences: Encoder of sequences with all columns, and of the layout of the added tokens.
        call: Options of the core's calls.

    """

    tokenizer: Tokenizer
    sequences: SequenceEncoder
    call: Call

    def encode(
        self,
        inputs: Sequence[Sequences],
        add_special_tokens: bool,
        truncation: Truncation | None,
        *,
        offsets: bool = True,
    ) -> list[Encoding]:
        """Encode inputs, each of one sequence or two; return an `Encoding` for each, truncated but not padded.

        Args:
            inputs: The inputs; a sequence is a text or a list of words.
            add_special_tokens: Add the tokens of the post-processor.
            truncation: Parameters of truncation; None truncates nothing.
            offsets: If False, offsets, word ids and token texts are left empty.

        Raises:
            Fallback: The truncation's length is less than the number of added tokens, or its stride is too long.

        """
        layouts: dict[int, tuple[Layout, int | None]] = {}
        untyped = not offsets and self.tokenizer.spec.post_processor is None
        found = []
        for n in {len(given) for given in inputs}:
            layout = self.sequences.layout(pair=n == 2, add_special_tokens=add_special_tokens)
            layouts[n] = layout, limit_of(layout, truncation)
        first_ids = _first_ids(layouts[1][1], truncation) if layouts.keys() == {1} else 0
        for given, ids in zip(inputs, self._bare_ids(inputs, first_ids), strict=True):
            layout, limit = layouts[len(given)]
            if limit is not None and truncation is not None:
                ids = truncated(ids, limit, truncation)
            types = 0 if untyped else _type_ids(layout, ids)
            compute_columns = self._columns_factory(given, add_special_tokens, limit, truncation, offsets)
            found.append(Encoding(_join_ids(layout, ids), types, compute_columns, n_sequences=layout.n_sequences))
        return found

    def post_process(self, parts: list[Columns], add_special_tokens: bool, truncation: Truncation | None) -> Encoding:
        """Truncate one encoded sequence or two, join them, and add special tokens; return the encoding.

        Raises:
            Fallback: The truncation's length is less than the number of added tokens.

        """
        layout = self.sequences.layout(pair=len(parts) == 2, add_special_tokens=add_special_tokens)
        if (limit := limit_of(layout, truncation)) is not None and truncation is not None:
            truncate(parts, limit, truncation)
        return Encoding.of(process(self.tokenizer.spec.post_processor, parts, add_special_tokens=add_special_tokens))

    def _bare_ids(self, inputs: Sequence[Sequences], first_ids: int) -> list[list[Ids]]:
        """Return the ids of each sequence of each input, without added tokens.

        Of single texts, at least the first `first_ids` ids are returned, and later ones may be left out; 0 returns all.
        """
        whole = all(isinstance(each, str) for given in inputs for each in given)
        if not whole:  # a word is not a sequence
            first_ids = 0
        may_be_cut = 0 < first_ids < len(inputs[0][0])
        if whole and len(inputs) == 1 and not may_be_cut:
            return [[self.tokenizer.encode(cast("str", each), add_special_tokens=False) for each in inputs[0]]]
        texts = [word for given in inputs for each in given for word in ([each] if isinstance(each, str) else each)]
        threads = 1 if os.environ.get("TOKENIZERS_PARALLELISM", "on").lower() in OFF else 0
        encoder, parse_special = self.call.encoder, self.call.parse_special
        ids, offsets, _ = encoder.encode_batch(for_core(texts), parse_special, (), threads, (), (), False, first_ids)
        starts = offsets.tolist()
        found, at = [], 0
        for given in inputs:
            parts: list[Ids] = []
            for each in given:
                n = 1 if isinstance(each, str) else len(each)
                parts.append(ids[starts[at] : starts[at + n]])
                at += n
            found.append(parts)
        return found

    def _columns_factory(
        self,
        given: Sequences,
        add_special_tokens: bool,
        limit: int | None,
        truncation: Truncation | None,
        offsets: bool,
    ) -> Callable[[], Columns]:
        def compute_columns() -> Columns:
            numbers = range(2) if offsets else (0, 0)  # the original's fast calls number no sequence
            parts = [self.sequences.sequence(e, self.call, i) for e, i in zip(given, numbers, strict=False)]
            if limit is not None and truncation is not None:
                truncate(parts, limit, truncation)
            if not offsets:
                for each in (each for part in parts for each in part.whole_with_overflow()):
                    n = len(each)
                    each.offsets, each.word_ids, each.tokens = [(0, 0)] * n, [None] * n, [""] * n
            return process(self.tokenizer.spec.post_processor, parts, add_special_tokens=add_special_tokens)

        return compute_columns


def _join_ids(layout: Layout, ids: Sequence[Ids]) -> list[int]:
    """Return the ids of one sequence or two, joined and with the added tokens of the layout."""
    lists = [part if isinstance(part, list) else part.tolist() for part in ids]
    if layout.items == (FIRST,):
        return lists[0]
    whole: list[int] = []
    for item in layout.items:
        whole += [item] if item >= 0 else lists[FIRST - item]
    return whole


def _type_ids(layout: Layout, ids: Sequence[Ids]) -> list[int] | int:
    """Return the type id of each token of `_join_ids`; a single int if all are equal."""
    if len(kinds := set(layout.type_ids)) == 1:
        return kinds.pop()
    types: list[int] = []
    for item, type_id in zip(layout.items, layout.type_ids, strict=True):
        types += [type_id] * (1 if item >= 0 else len(ids[FIRST - item]))
    return types


def _first_ids(limit: int | None, truncation: Truncation | None) -> int:
    """Return how many ids at the start of a single sequence truncation needs to know; 0 if it needs all."""
    if limit is None or truncation is None or truncation["direction"] == "left":
        return 0
    return limit + 1  # one more tells that there is something to cut off


def limit_of(layout: Layout, truncation: Truncation | None) -> int | None:
    """Return the most tokens of a truncated encoding, not counting added tokens; None without truncation.

    Raise `Fallback` if truncation's `max_length` is less than the number of added tokens.
    """
    if truncation is None:
        return None
    limit: int = truncation["max_length"] - layout.n_added
    if limit < 0:
        raise Fallback("max_length is less than the number of added tokens")
    return limit


def lengths(parts: Sequence[Sized], limit: int, truncation: Truncation) -> tuple[int, int]:
    """Return the lengths to which one sequence or two are truncated, so that both together have at most `limit` tokens."""
    second = len(parts[1]) if len(parts) == 2 else None
    return lengths_after_truncation(len(parts[0]), second, limit, truncation["strategy"])


def truncated(ids: Sequence[Ids], limit: int, truncation: Truncation) -> list[Ids]:
    """Return the ids that truncation keeps of each of one sequence or two; raise `Fallback` if the stride is too long."""
    kept = []
    for part, length in zip(ids, lengths(ids, limit, truncation), strict=False):
        if 0 < length < len(part) and truncation["stride"] >= length:
            raise Fallback("stride is not less than max_length")
        cut = len(part) - length if truncation["direction"] == "left" and length < len(part) else 0
        kept.append(part[cut : cut + length])
    return kept


def truncate(parts: Sequence[Columns], limit: int, truncation: Truncation) -> None:
    """Truncate one encoded sequence or two in place, all columns included; the tokens cut off become overflowing parts."""
    for part, length in zip(parts, lengths(parts, limit, truncation), strict=False):
        part.truncate(length, stride=truncation["stride"], side=truncation["direction"])


def pad(encodings: Sequence[Encoding], padding: Mapping[str, Any] | None) -> None:
    """Pad encodings in place to the length that `padding` gives, or else to the longest; a no-op if `padding` is None."""
    if padding is None or not encodings:
        return
    length = padding["length"]
    if length is None:
        length = max(len(encoding) for encoding in encodings)
    if multiple := padding["pad_to_multiple_of"]:
        length = -(-length // multiple) * multiple
    for encoding in encodings:
        encoding.pad(length, padding["direction"], padding["pad_id"], padding["pad_type_id"], padding["pad_token"])
