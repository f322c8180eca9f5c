"""`Encoding`: the interface of `tokenizers.Encoding`, with columns that are computed when they are first read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import tokenizers
from numpy.typing import NDArray

from tokenweir.encode.encoding.columns import Encoding as Columns
from tokenweir.encode.values.encoded import Side

Span = tuple[int, int]
T = TypeVar("T")


class Encoding:
    """An encoded text or pair of texts, with the interface of `tokenizers.Encoding`.

    Most callers read ids and masks only. The other columns, such as offsets and word ids, are computed when one is
    first read.
    """

    __slots__ = ("_columns", "_compute_columns", "_ids", "_mask", "_n_sequences", "_padding", "_spans", "_type_ids")

    def __init__(
        self,
        ids: list[int],
        type_ids: list[int] | int,
        compute_columns: Callable[[], Columns] | None,
        columns: Columns | None = None,
        *,
        n_sequences: int = 1,
    ) -> None:
        """Create an encoding.

        Args:
            ids: The token ids.
            type_ids: The type id of each token, or one int for all.
            compute_columns: Computes all columns; None if `columns` is given.
            columns: All columns, if they are known already.
            n_sequences: The number of sequences, 1 or 2.

        """
        self._n_sequences = n_sequences
        self._ids = ids
        self._type_ids = type_ids
        self._compute_columns = compute_columns
        self._columns = columns
        self._padding: list[tuple[int, dict[str, Any]]] = []
        self._mask: list[int] | None = None
        self._spans: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, columns: Columns) -> Encoding:
        """Return an encoding of columns that are computed already."""
        return cls(columns.ids, columns.type_ids, None, columns)

    @property
    def columns(self) -> Columns:
        """All columns of the encoding, padding included; computed at the first read."""
        if (found := self._columns) is None:
            assert self._compute_columns is not None
            found = self._compute_columns()
            for length, options in self._padding:
                found.pad(length, **options)
            self._columns, self._compute_columns = found, None
        return found

    def _changed(self) -> None:
        columns = self.columns
        self._ids, self._type_ids, self._spans = columns.ids, columns.type_ids, None

    # -- columns -------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[int]:
        """The id of each token."""
        return self._ids.copy()

    @property
    def type_ids(self) -> list[int]:
        """The type id of each token."""
        type_ids = self._type_ids
        if isinstance(type_ids, int):
            self._type_ids = type_ids = [type_ids] * len(self._ids)
        return type_ids.copy()

    @property
    def attention_mask(self) -> list[int]:
        """For each token 0 if it is padding, otherwise 1."""
        if self._columns is not None:
            return self._columns.attention_mask.copy()
        return [1] * len(self._ids) if self._mask is None else self._mask.copy()

    @property
    def special_tokens_mask(self) -> list[int]:
        """For each token 1 if it was added (a special token or padding), otherwise 0."""
        return self.columns.special_tokens_mask.copy()

    @property
    def tokens(self) -> list[str]:
        """The text of each token, as the vocabulary has it."""
        return self.columns.tokens.copy()

    @property
    def offsets(self) -> list[Span]:
        """The (start, end) characters of each token in its sequence; for pre-tokenized input, in its word."""
        return self.columns.offsets.copy()

    @property
    def word_ids(self) -> list[int | None]:
        """For each token the number of its word in its sequence; None for added tokens."""
        return self.columns.word_ids.copy()

    @property
    def words(self) -> list[int | None]:
        """The same as `word_ids`, with a `DeprecationWarning`, as in `tokenizers`."""
        warnings.warn("Encoding.words is deprecated: use Encoding.word_ids", DeprecationWarning, stacklevel=2)
        return self.word_ids

    @property
    def sequence_ids(self) -> list[int | None]:
        """For each token the number of its sequence, 0 or 1; None for added tokens."""
        return self.columns.sequence_ids

    @property
    def n_sequences(self) -> int:
        """The number of sequences: 1 for a text, 2 for a pair."""
        return self._n_sequences if self._columns is None else self.columns.n_sequences

    @property
    def overflowing(self) -> list[Encoding]:
        """The parts that truncation has cut off, each as an encoding."""
        if self._columns is None and self._compute_columns is None:
            return []
        return [Encoding.of(part) for part in self.columns.overflowing]

    # -- changes -------------------------------------------------------------------------------------------------------

    def pad(
        self,
        length: int,
        direction: Side = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Pad in place to `length` tokens on the side `direction`; pad overflowing parts as well."""
        options: dict[str, Any] = {
            "side": direction,
            "pad_id": pad_id,
            "pad_type_id": pad_type_id,
            "pad_token": pad_token,
        }
        if direction not in ("left", "right"):
            raise ValueError(f"Unknown `direction`: `{direction}`. Use one of `left`, `right`")
        if self._columns is not None:
            self._columns.pad(length, **options)
            return self._changed()
        self._padding.append((length, options))
        missing = length - len(self._ids)
        if missing > 0:
            left = direction == "left"
            mask, zeros, ids = self.attention_mask, [0] * missing, [pad_id] * missing
            self._mask = zeros + mask if left else mask + zeros
            if self._type_ids != pad_type_id:  # one id of all stays one
                own, types = self.type_ids, [pad_type_id] * missing
                self._type_ids = types + own if left else own + types
            self._ids = ids + self._ids if left else self._ids + ids

    def truncate(self, max_length: int, stride: int = 0, direction: Side = "right") -> None:
        """Truncate in place to `max_length` tokens, cutting at the side `direction`.

        The other tokens become overflowing parts, each of which repeats `stride` tokens of the part before.
        """
        if direction not in ("left", "right"):
            raise ValueError(f"Invalid truncation direction value : {direction}")
        self.columns.truncate(max_length, stride=stride, side=direction)
        self._changed()

    def set_sequence_id(self, sequence_id: int) -> None:
        """Assign all tokens to the sequence of this number."""
        self.columns.set_sequence_id(sequence_id)

    @staticmethod
    def merge(encodings: Iterable[Encoding], growing_offsets: bool = True) -> Encoding:
        """Concatenate encodings to a new one.

        With `growing_offsets`, the offsets of each are shifted by the end of those before it.
        """
        whole = Columns([], [], [], [])
        for encoding in encodings:
            part = encoding.columns.copy()
            if growing_offsets and whole.offsets:
                shift = whole.offsets[-1][1]
                part.offsets = [(start + shift, end + shift) for start, end in part.offsets]
            whole.append(part)
        return Encoding.of(whole)

    # -- places --------------------------------------------------------------------------------------------------------

    def token_to_sequence(self, token_index: int) -> int | None:
        """Return the number of a token's sequence; None if it is in no sequence."""
        ranges = self.columns.sequence_ranges
        if token_index > len(self._ids):
            return None
        if not ranges:
            return 0
        return next((i for i, at in ranges.items() if token_index in at), None)

    def token_to_chars(self, token_index: int) -> Span | None:
        """Return the (start, end) characters of a token, as in `offsets`; None if the token is in no sequence."""
        return self._of_token(self.columns.offsets, token_index)

    def token_to_word(self, token_index: int) -> int | None:
        """Return the number of a token's word in its sequence; None if the token is in no word."""
        return self._of_token(self.columns.word_ids, token_index)

    def _of_token(self, column: Sequence[T], token_index: int) -> T | None:
        if self.token_to_sequence(token_index) is None or not 0 <= token_index < len(column):
            return None
        return column[token_index]

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Return the (start, end) indices of the tokens of a word of a sequence; None if no token is in it."""
        at = self.columns.sequence_range(sequence_index)
        found = []
        for i, word in enumerate(self.columns.word_ids[at.start : at.stop], at.start):
            if word is not None and word > word_index:
                break
            if word == word_index:
                found.append(i)
        return (found[0], found[-1] + 1) if found else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """Return the (start, end) characters of a word, as in `offsets`; None if no token is in it."""
        if (tokens := self.word_to_tokens(word_index, sequence_index)) is None:
            return None
        offsets = self.columns.offsets
        return offsets[tokens[0]][0], offsets[tokens[1] - 1][1]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """Return the index of the first token that covers a character of a sequence; None if no token covers it."""
        if self._spans is None:
            self._spans = np.array(self.columns.offsets, np.int64).reshape(-1, 2)
        at = self.columns.sequence_range(sequence_index)
        spans = self._spans[at.start : at.stop]
        covers = (spans[:, 0] <= char_pos) & (char_pos < spans[:, 1])
        return at.start + int(covers.argmax()) if covers.any() else None

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """Return the number of the word that covers a character of a sequence; None if no word covers it.

        Args:
            char_pos: The index of the character in the text of its sequence; for pre-tokenized input, in a word.
            sequence_index: The number of the sequence, 0 or 1. If the encoding has no such sequence, all tokens are
                searched and the first match counts.

        """
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class `tokenizers.Encoding`, so that `isinstance` accepts this object as one."""
        return tokenizers.Encoding

    def __reduce__(self) -> tuple[Callable[[Columns], Encoding], tuple[Columns]]:
        return Encoding.of, (self.columns,)

    def __repr__(self) -> str:
        return (
            f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, attention_mask,"
            " special_tokens_mask, overflowing])"
        )
