"""The results of encoding other than a plain list of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import index
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode import _core
from tokenweir.encode.values.texts import is_arrow

if TYPE_CHECKING:
    import pyarrow

Side = Literal["left", "right"]


AddedIds = tuple[int, int]
"""The numbers of ids that are added before each text and after it."""


def check_side(name: str, side: str) -> None:
    """Raise `ValueError` if the argument `name` is not a side."""
    if side not in ("left", "right"):
        raise ValueError(f'{name} must be "left" or "right", not {side!r}')


def too_short(name: str, length: int, n_added: int) -> ValueError:
    """Return the error for a length, the argument `name`, without room for the ids that are added to every text."""
    return ValueError(f"{name}={length} leaves no room for the {n_added} ids that are added to every text")


def checked_padding(pad_id: int, length: int | None, *sides: str) -> tuple[int, int | None]:
    """Check the arguments of `Ragged.padded`; return `pad_id` and `length` as int, `length` or None.

    `sides` are the two arguments `side` and `truncation_side`. Raises the errors of `Ragged.padded`.
    """
    if pad_id is None:  # as `Tokenizer.pad_id` may be
        raise TypeError("pad_id must be int, not None: for a tokenizer without one use any id, such as 0, and the mask")
    for name, value in zip(("side", "truncation_side"), sides, strict=True):
        check_side(name, value)
    if length is not None and index(length) < 0:
        raise ValueError(f"length must be at least 0, not {length}")
    if not -(1 << 31) <= index(pad_id) < 1 << 31:
        raise ValueError(f"pad_id must fit into int32, not {pad_id}")
    return index(pad_id), length


def kept_added(added: AddedIds | None, width: int, longest: Callable[[], int]) -> AddedIds:
    """Return the numbers of added ids that rows keep when those of more than `width` ids are truncated.

    Args:
        added: The numbers of all rows; None if rows differ.
        width: The most ids of a row.
        longest: Returns the number of ids of the longest row.

    Raises:
        ValueError: A row must be truncated, and `width` has no room for the added ids, or their number is not known.

    """
    if added is not None and width >= sum(added):
        return added
    if longest() <= width:
        return 0, 0
    if added is None:
        raise ValueError("texts with added ids and texts without them cannot be truncated together")
    raise too_short("length", width, sum(added))


class _IdsAndOffsets(NamedTuple):
    ids: list[int]
    offsets: list[tuple[int, int]]


class Encoded(_IdsAndOffsets):
    """Ids with their offsets in the text. It unpacks into these two, and is compared by them.

    Attributes:
        ids: Token ids.
        offsets: For each id the (start, end) of the characters that it covers, always whole ones; (0, 0) for ids that the
            post-processor adds. In pre-tokenized input they count from the start of the word.
        type_ids: For each id the number that the post-processor gives to its text: in most files 0 for the first one, and 1
            for the second of a pair.
        special_tokens_mask: 1 for ids that the post-processor adds, otherwise 0.
        word_ids: For each id the number of its piece, or of its word in pre-tokenized input; None for ids that the
            post-processor adds. Each text of a pair counts from 0.
        sequence_ids: For each id 0 for the first text, 1 for the second one; None for ids that the post-processor adds.

    """

    type_ids: list[int]
    special_tokens_mask: list[int]
    word_ids: list[int | None]
    sequence_ids: list[int | None]

    def __new__(
        cls,
        ids: list[int],
        offsets: list[tuple[int, int]],
        type_ids: list[int] | None = None,
        special_tokens_mask: list[int] | None = None,
        word_ids: list[int | None] | None = None,
        sequence_ids: list[int | None] | None = None,
    ) -> Self:
        self = super().__new__(cls, ids, offsets)
        n = len(ids)
        self.type_ids = [0] * n if type_ids is None else type_ids
        self.special_tokens_mask = [0] * n if special_tokens_mask is None else special_tokens_mask
        self.word_ids = [None] * n if word_ids is None else word_ids
        self.sequence_ids = [0] * n if sequence_ids is None else sequence_ids
        return self

    @property
    def attention_mask(self) -> list[int]:
        """1 for every id, since none is padding."""
        return [1] * len(self.ids)


class Packed(NamedTuple):
    """Rows of several texts each, for training; all int32[rows, length].

    Attributes:
        ids: The ids, with padding at the end of each row.
        positions: For each id its place in its text, from 0; 0 for padding.
        texts: For each id the number of its text in its row, from 1, as block-diagonal attention needs it; 0 for padding.

    """

    ids: NDArray[np.int32]
    positions: NDArray[np.int32]
    texts: NDArray[np.int32]


class Ragged:
    """The ids of many texts in one array.

    Attributes:
        ids: int32[total], all ids one after the other.
        offsets: int64[n + 1]; text i has `ids[offsets[i]:offsets[i + 1]]`.
        spans: int64[total, 2], the (start, end) characters of each id in its text, as in `Encoded.offsets`; None unless
            `encode_batch(offsets=True)` was asked for them.
        added: The numbers of ids that the post-processor added before each text and after it, which `padded` keeps when it
            truncates; None if texts differ.

    """

    __slots__ = ("added", "ids", "offsets", "spans")

    def __init__(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        spans: NDArray[np.int64] | None = None,
        *,
        added: AddedIds | None = (0, 0),
    ) -> None:
        self.ids = ids
        self.offsets = offsets
        self.spans = spans
        self.added = added

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> NDArray[np.int32]:
        n = len(self)
        if not -n <= index(number) < n:
            raise IndexError(f"text {number} of {n}")
        number %= n
        return self.ids[self.offsets[number] : self.offsets[number + 1]]

    def __iter__(self) -> Iterator[NDArray[np.int32]]:
        return (self[i] for i in range(len(self)))

    def padded(
        self, pad_id: int, length: int | None = None, *, side: Side = "right", truncation_side: Side = "right"
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return a rectangular array with one padded or truncated row per text.

        Truncation keeps the ids that the post-processor added, as HuggingFace's does.

        Args:
            pad_id: The id for padding.
            length: Ids per row; None means the length of the longest text.
            side: The side of the padding.
            truncation_side: The side on which long texts are truncated.

        Returns:
            The rows and a mask, 1 for an id of the text and 0 for padding; both int32[n, length].

        Raises:
            TypeError: `pad_id` is None, as `Tokenizer.pad_id` may be.
            ValueError: `pad_id` is not an int32, `length` is negative or has no room for the added ids of a text that
                must be truncated, or a side is neither "left" nor "right".

        """
        pad_id, width = checked_padding(pad_id, length, side, truncation_side)
        sizes = np.diff(self.offsets)
        longest = int(sizes.max(initial=0))
        width = longest if width is None else width
        before, after = kept_added(self.added, width, lambda: longest)
        taken = np.minimum(sizes, width)[:, None]
        column = np.arange(width) - (width - taken if side == "left" else 0)
        mask = (column >= 0) & (column < taken)
        left_out = column >= (
            before if truncation_side == "left" else taken - after
        )  # the ids behind those that are cut
        places = self.offsets[:-1, None] + column + np.where(left_out, sizes[:, None] - taken, 0)
        rows = np.full((len(self), width), pad_id, np.int32)
        rows[mask] = self.ids[places[mask]]
        return rows, mask.astype(np.int32)

    def packed(self, length: int, pad_id: int) -> Packed:
        """Return rows of `length` ids with as many texts, in order, as fit into each. No text is cut.

        Args:
            length: Ids per row.
            pad_id: The id for padding.

        Raises:
            TypeError: `pad_id` is None.
            ValueError: A text has more ids than a row, or an argument is out of range.

        """
        pad_id, _ = checked_padding(pad_id, length, "right", "right")
        sizes = np.diff(self.offsets)
        if (long := np.flatnonzero(sizes > length)).size:
            raise ValueError(f"text {long[0]} has {sizes[long[0]]} ids, more than a row of {length}")
        row, column, number = -1, length, 0
        places = np.zeros((len(sizes), 3), np.int64)  # the row and column where each text begins, and its number there
        for text, size in enumerate(sizes.tolist()):
            if row < 0 or column + size > length:
                row, column, number = row + 1, 0, 0
            number += 1
            places[text] = row, column, number
            column += size
        rows = np.full((3, row + 1, length), 0, np.int32)
        rows[0] = pad_id
        positions = (
            np.arange(len(self.ids)) - np.repeat(self.offsets[:-1], sizes) if len(sizes) else np.zeros(0, np.int64)
        )
        own_row, own_column, own_number = (np.repeat(values, sizes) for values in places.T)
        rows[:, own_row, own_column + positions] = self.ids, positions, own_number
        return Packed(*rows)

    def to_arrow(self) -> pyarrow.LargeListArray:
        """Return an Arrow array of large lists of int32, which shares the memory. Requires pyarrow.

        Other Arrow libraries accept a `Ragged` itself, by `__arrow_c_array__`.

        Raises:
            ImportError: pyarrow is not installed; says how to install it.

        """
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise ImportError("Ragged.to_arrow() needs pyarrow: pip install 'tokenweir[arrow]'") from error
        return pyarrow.array(self)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Export by Arrow's C data interface: large lists of int32, whatever schema is requested."""
        ids = np.ascontiguousarray(self.ids, np.int32)
        return _core.ragged_to_arrow(ids, np.ascontiguousarray(self.offsets, np.int64))

    @classmethod
    def from_arrow(cls, array: object, *, added: AddedIds | None = (0, 0)) -> Ragged:
        """Import lists of ids from any Arrow library.

        Args:
            array: Lists or large lists of int32 without nulls, as an array or in chunks. The ids of a single array are not
                copied; those of several chunks are.
            added: As in `Ragged.added`, which Arrow does not keep.

        Raises:
            TypeError: `array` is not an Arrow array.
            ValueError: `array` has other values, or a null.

        """
        if not is_arrow(array):
            raise TypeError(f"from_arrow takes an Arrow array, not {type(array).__name__}")
        rows: list[Ragged] = []
        for ids, ends in _core.ragged_from_arrow(array):
            offsets = ends.astype(np.int64, copy=False)
            offsets, ids = (offsets - offsets[0] if offsets[0] else offsets), ids[offsets[0] : offsets[-1]]
            rows.append(cls(ids, offsets, added=added))
        if len(rows) == 1:
            return rows[0]
        starts = np.cumsum([0, *(len(row.ids) for row in rows)])
        shifted = [row.offsets[1:] + start for row, start in zip(rows, starts, strict=False)]
        all_ids = np.concatenate([np.zeros(0, np.int32), *(row.ids for row in rows)])
        return cls(all_ids, np.concatenate([np.zeros(1, np.int64), *shifted]), added=added)

    def __repr__(self) -> str:
        return f"Ragged({len(self)} texts, {len(self.ids)} ids)"
