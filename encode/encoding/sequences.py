"""Post-processing of one or two encoded sequences: added tokens, type ids and trimmed offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, assert_never

import numpy as np

from tokenweir.encode.components.post_process import blank_edges, trim_offsets, type_id_of
from tokenweir.encode.encoding.columns import Encoding
from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.spec import (
    BertProcessing,
    ByteLevel,
    PostProcessor,
    RobertaProcessing,
    TemplateProcessing,
)
from tokenweir.encode.spec.parts import parts
from tokenweir.encode.spec.post_processors import SinglePostProcessor


def process(
    post_processor: PostProcessor | None, encodings: Sequence[Encoding], *, add_special_tokens: bool
) -> Encoding:
    """Apply a post-processor to one or two encoded sequences; return them joined to one encoding.

    As `tokenizers` 0.23 does it. The given encodings are changed.

    Args:
        post_processor: The post-processor; None only joins.
        encodings: One sequence, or a pair.
        add_special_tokens: Whether the post-processor adds its tokens; if not, it still sets type ids and trims offsets.

    """
    made = type(encodings[0])
    if post_processor is None and len(encodings) == 1:
        return encodings[0]
    if post_processor is None:
        for i, encoding in enumerate(encodings):
            encoding.set_sequence_id(i)
        return made.joined(encodings)
    found = list(encodings)
    for i, encoding in enumerate(found):
        for part in encoding.whole_with_overflow():
            part.set_sequence_id(i)
        encoding.type_ids = [i] * len(encoding)
    for each in parts(post_processor):
        found = _apply(each, found, made, add_special_tokens)
    return found[0] if len(found) == 1 else made.joined(found)


def _apply(
    part: SinglePostProcessor, encodings: list[Encoding], made: type[Encoding], add_special_tokens: bool
) -> list[Encoding]:
    match part:
        case ByteLevel():
            _trim(part, encodings)
            for i, encoding in enumerate(encodings):
                encoding.set_sequence_id(i)
        case BertProcessing():
            if add_special_tokens:
                ends = [([part.cls] if i == 0 else [], i) for i in range(len(encodings))]
                return [_between(b, e, [part.sep], i, i) for e, (b, i) in zip(encodings, ends, strict=True)]
        case RobertaProcessing():
            _trim(part, encodings)
            for encoding in encodings:
                encoding.type_ids = [0] * len(encoding)
                for overflow in encoding.overflowing if add_special_tokens else ():
                    overflow.type_ids = [0] * len(overflow)
            if add_special_tokens:
                begins = [part.cls if i == 0 else part.sep for i in range(len(encodings))]
                return [
                    _between([b], e, [part.sep], i, 0) for i, (e, b) in enumerate(zip(encodings, begins, strict=True))
                ]
        case TemplateProcessing():
            return _from_template(part, encodings, made, add_special_tokens)
        case _:
            assert_never(part)
    return encodings


def _trim(part: ByteLevel | RobertaProcessing, encodings: Sequence[Encoding]) -> None:
    for encoding in encodings if part.trim_offsets else ():
        for each in encoding.whole_with_overflow():
            spans = np.array(each.offsets, np.int64).reshape(-1, 2)
            first = np.arange(len(spans)) == 0
            trimmed = trim_offsets(blank_edges(each.tokens), spans, first, keep_prefix_space=part.add_prefix_space)
            each.offsets = [(start, end) for start, end in trimmed.tolist()]


def _between(
    before: list[tuple[str, int]], encoding: Encoding, after: list[tuple[str, int]], sequence_id: int, type_id: int
) -> Encoding:
    """Return a copy of a sequence with tokens before and after it, and around each of its overflowing parts.

    Args:
        before: The tokens to put before it, each (token, id).
        encoding: The sequence.
        after: The tokens to put after it.
        sequence_id: The number of the sequence.
        type_id: The type id of the tokens that are put around it.

    """
    made = type(encoding)
    found = []
    for part in encoding.whole_with_overflow():
        inner = part.part(0, len(part))
        inner.special_tokens_mask, inner.attention_mask = [0] * len(part), [1] * len(part)
        inner.set_sequence_id(sequence_id)
        found.append(made.joined([made.added(before, type_id), inner, made.added(after, type_id)]))
    whole, *whole.overflowing = found
    return whole


def _from_template(
    template: TemplateProcessing, encodings: Sequence[Encoding], made: type[Encoding], add_special_tokens: bool
) -> list[Encoding]:
    found = []
    for item in template.single if len(encodings) == 1 else template.pair:
        if (sequence := item.get("Sequence")) is not None:
            number = int(sequence["id"] != "A")
            encoding = encodings[number].copy()
            encoding.type_ids = [int(type_id_of(sequence))] * len(encoding)
            encoding.set_sequence_id(number)
            found.append(encoding)
        elif add_special_tokens:
            special = item["SpecialToken"]
            name = str(special["id"])
            if name not in template.special_tokens:
                raise TokenizerFileError(f"post_processor: the template's special token {name!r:.60} is not defined")
            known = template.special_tokens[name]
            names = known.tokens or ("",) * len(known.ids)
            found.append(made.added(zip(names, known.ids, strict=True), int(type_id_of(special))))
    return found


class Layout(NamedTuple):
    """The places of one sequence, or of two, among the tokens that a post-processor adds.

    Attributes:
        items: The ids of added tokens, in order, with `FIRST` and `SECOND` in place of the sequences.
        type_ids: The type id of each item.
        special: 1 for each item that was added.
        sequence_ids: The number of each item's sequence; None for those that belong to none.

    """

    items: tuple[int, ...]
    type_ids: tuple[int, ...]
    special: tuple[int, ...]
    sequence_ids: tuple[int | None, ...]
    n_sequences: int

    @property
    def n_added(self) -> int:
        """The number of tokens that are added."""
        return sum(item >= 0 for item in self.items)

    @property
    def n_before(self) -> int:
        """The number of tokens that are added before the first sequence."""
        return next((i for i, item in enumerate(self.items) if item < 0), len(self.items))

    @property
    def n_after(self) -> int:
        """The number of tokens that are added after the last sequence."""
        return next((i for i, item in enumerate(reversed(self.items)) if item < 0), 0)

    def around(self, before: int, n: int, after: int) -> Around:
        """Return the columns of one sequence with added tokens before and after it.

        Args:
            before: The number of tokens before it; those beyond the post-processor's own have the sequence's type id.
            n: The number of tokens of the sequence.
            after: The number of tokens after it, likewise.

        """
        start = self.n_before
        own = start if start < len(self.items) else None
        left, right = range(start), range(start + 1, len(self.items))
        places = [
            *([None] * (before - len(left)) + [*left])[:before],
            *[own] * n,
            *([*right] + [None] * (after - len(right)))[:after],
        ]
        type_id = 0 if own is None else self.type_ids[own]
        return Around(
            [type_id if at is None else self.type_ids[at] for at in places],
            [1 if at is None else self.special[at] for at in places],
            [None if at is None else self.sequence_ids[at] for at in places],
        )


class Around(NamedTuple):
    """Three columns of an encoded sequence and the tokens around it, a value per token, as in `Encoded`."""

    type_ids: list[int]
    special_tokens_mask: list[int]
    sequence_ids: list[int | None]


FIRST, SECOND = -1, -2
"""The items of a `Layout` that stand for sequences."""


def layout(post_processor: PostProcessor | None, *, pair: bool, add_special_tokens: bool) -> Layout:
    """Return where a post-processor puts its tokens around one sequence, or around a pair.

    With `add_special_tokens` false it adds no tokens.
    """
    items = (FIRST, SECOND) if pair else (FIRST,)
    sequences = [Encoding([item], [""], [(0, 0)], [0], type_ids=[i]) for i, item in enumerate(items)]
    whole = process(post_processor, sequences, add_special_tokens=add_special_tokens)
    return Layout(
        tuple(whole.ids),
        tuple(whole.type_ids),
        tuple(whole.special_tokens_mask),
        tuple(whole.sequence_ids),
        whole.n_sequences,
    )
