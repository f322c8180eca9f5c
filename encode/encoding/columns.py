"""`Encoding`: the columns of an encoded sequence, joined, truncated and padded as HuggingFace's library does it."""

from __future__ import annotations

from collections.abc import Iterable

from tokenweir.encode.values.encoded import Side

Offsets = tuple[int, int]

_COLUMNS = ("ids", "tokens", "offsets", "word_ids", "type_ids", "special_tokens_mask", "attention_mask")


class Encoding:
    """One or more sequences, a value per token in each column. Mutable.

    Attributes:
        ids: Token ids.
        type_ids: For each token the number that the post-processor gives to its sequence, such as 0 or 1.
        tokens: The tokens as the vocabulary spells them; for added tokens, the text that they took.
        word_ids: For each token the number of its piece in the sequence, or of its word in pre-tokenized input; None for
            tokens that the post-processor added.
        offsets: The (start, end) characters of each token in its sequence; for pre-tokenized input, in its word.
        special_tokens_mask: 1 for tokens that the post-processor added, and for padding; else 0.
        attention_mask: 0 for padding, else 1.
        overflowing: The rest of a truncated encoding, as encodings of at most the same length.
        sequence_ranges: For each sequence, by its number, the range of its tokens' positions.

    """

    __slots__ = (*_COLUMNS, "overflowing", "sequence_ranges")

    def __init__(
        self,
        ids: list[int],
        tokens: list[str],
        offsets: list[Offsets],
        word_ids: list[int | None],
        *,
        type_ids: list[int] | None = None,
        special_tokens_mask: list[int] | None = None,
        attention_mask: list[int] | None = None,
    ) -> None:
        self.ids = ids
        self.tokens = tokens
        self.offsets = offsets
        self.word_ids = word_ids
        self.type_ids = [0] * len(ids) if type_ids is None else type_ids
        self.special_tokens_mask = [0] * len(ids) if special_tokens_mask is None else special_tokens_mask
        self.attention_mask = [1] * len(ids) if attention_mask is None else attention_mask
        self.overflowing: list[Encoding] = []
        self.sequence_ranges: dict[int, range] = {}

    @classmethod
    def added(cls, tokens: Iterable[tuple[str, int]], type_id: int) -> Encoding:
        """Return an encoding of tokens, each (token, id), that a post-processor adds; `type_id` is that of all of them."""
        added = [*tokens]
        n = len(added)
        names, ids = [name for name, _ in added], [token_id for _, token_id in added]
        return cls(ids, names, [(0, 0)] * n, [None] * n, type_ids=[type_id] * n, special_tokens_mask=[1] * n)

    def __len__(self) -> int:
        return len(self.ids)

    def whole_with_overflow(self) -> Iterable[Encoding]:
        """Yield this encoding and each of its overflowing parts."""
        yield self
        yield from self.overflowing

    def part(self, start: int, end: int) -> Encoding:
        """Return a copy with only the tokens [start, end), without overflowing parts and sequence ranges."""
        return type(self)(**{column: getattr(self, column)[start:end] for column in _COLUMNS})

    def copy(self) -> Encoding:
        """Return a copy that shares no list with this one."""
        copied = self.part(0, len(self))
        copied.overflowing = [part.copy() for part in self.overflowing]
        copied.sequence_ranges = dict(self.sequence_ranges)
        return copied

    def set_sequence_id(self, sequence_id: int) -> None:
        """Record that all tokens belong to the sequence with this number."""
        self.sequence_ranges[sequence_id] = range(len(self))

    def append(self, other: Encoding) -> None:
        """Append the tokens of another encoding to this one, in place.

        Overflowing parts are combined: each part of this encoding with the other one and each of its parts, and this
        encoding with each part of the other.
        """
        overflowing = []
        for part in self.overflowing:
            for end in other.whole_with_overflow():
                overflowing.append(part.copy())
                overflowing[-1].append(end)
        for end in other.overflowing:
            overflowing.append(self.copy())
            overflowing[-1].append(end)
        shift = len(self)
        for sequence_id, at in other.sequence_ranges.items():
            self.sequence_ranges[sequence_id] = range(at.start + shift, at.stop + shift)
        for column in _COLUMNS:
            getattr(self, column).extend(getattr(other, column))
        self.overflowing = overflowing

    @classmethod
    def joined(cls, encodings: Iterable[Encoding]) -> Encoding:
        """Return a new encoding of all tokens of the encodings, one after the other, appended as by `append`."""
        whole = cls([], [], [], [])
        for encoding in encodings:
            whole.append(encoding)
        return whole

    def truncate(self, max_length: int, *, stride: int = 0, side: Side = "right") -> None:
        """Keep at most `max_length` tokens; the others become overflowing parts.

        Args:
            max_length: The most tokens of this encoding and of each part.
            stride: The number of tokens that a part repeats of the one before.
            side: "right" keeps the first tokens, "left" the last ones.

        Raises:
            ValueError: `stride` is not less than `max_length`.

        """
        n = len(self)
        if max_length >= n:
            return
        if max_length == 0:
            first, parts = self.part(0, 0), [self.copy()]
        else:
            if stride >= max_length:
                raise ValueError(f"stride ({stride}) must be less than the most tokens of a part ({max_length})")
            first, *parts = (self.part(start, end) for start, end in _windows(n, max_length, stride, side))
        for column in Encoding.__slots__:
            setattr(self, column, getattr(first, column))
        self.overflowing = parts

    def pad(
        self,
        length: int,
        *,
        side: Side = "right",
        pad_id: int = 0,
        pad_type_id: int = 0,
        pad_token: str = "[PAD]",
    ) -> None:
        """Pad this encoding and its overflowing parts to `length` tokens, in place. Longer ones are unchanged.

        Args:
            length: The number of tokens.
            side: The side on which padding is added.
            pad_id: The id of padding.
            pad_type_id: The type id of padding.
            pad_token: The token of padding.

        """
        for part in self.overflowing:
            part.pad(length, side=side, pad_id=pad_id, pad_type_id=pad_type_id, pad_token=pad_token)
        missing = length - len(self)
        if missing <= 0:
            return
        padding = type(self)(
            [pad_id] * missing,
            [pad_token] * missing,
            [(0, 0)] * missing,
            [None] * missing,
            type_ids=[pad_type_id] * missing,
            special_tokens_mask=[1] * missing,
            attention_mask=[0] * missing,
        )
        left = side == "left"
        for column in _COLUMNS:
            own, added = getattr(self, column), getattr(padding, column)
            setattr(self, column, added + own if left else own + added)
        if left:
            shifted = {i: range(at.start + missing, at.stop + missing) for i, at in self.sequence_ranges.items()}
            self.sequence_ranges = shifted

    @property
    def n_sequences(self) -> int:
        """The number of sequences of which ranges are known, at least 1."""
        return len(self.sequence_ranges) or 1

    def sequence_range(self, sequence_id: int) -> range:
        """Return the positions of the tokens of the sequence with this number; those of all tokens, if it is unknown."""
        return self.sequence_ranges.get(sequence_id, range(len(self)))

    @property
    def sequence_ids(self) -> list[int | None]:
        """The number of each token's sequence; None for tokens that were added."""
        found: list[int | None] = [None] * len(self)
        for sequence_id in range(self.n_sequences):
            at = self.sequence_range(sequence_id)
            found[at.start : at.stop] = [sequence_id] * len(at)
        return found


def _windows(n: int, max_length: int, stride: int, side: Side) -> Iterable[Offsets]:
    """Yield the (start, end) of the parts into which truncation cuts `n` tokens; the first one is the part to keep.

    Args:
        n: The number of tokens.
        max_length: The most tokens of a part.
        stride: The number of tokens that a part repeats of the one before.
        side: "right" keeps the first tokens, "left" the last ones.

    """
    step = max_length - stride
    if side == "right":
        for start in range(0, n, step):
            end = min(start + max_length, n)
            yield start, end
            if end == n:
                return
    else:
        for end in range(n, 0, -step):
            start = max(end - max_length, 0)
            yield start, end
            if start == 0:
                return
