"""`SequenceEncoder`: encoding with offsets, of one text, of words, and of pairs of either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.components.post_process import Trim, blank_edges, trim_offsets
from tokenweir.encode.encoding.columns import Encoding
from tokenweir.encode.encoding.selection import Call
from tokenweir.encode.encoding.sequences import Layout, layout, process
from tokenweir.encode.encoding.truncation import Truncation, lengths_after_truncation
from tokenweir.encode.errors import TextError
from tokenweir.encode.spec import PostProcessor
from tokenweir.encode.values.encoded import Encoded
from tokenweir.encode.values.texts import several_texts

Sequences = Sequence[str | Sequence[str]]
"""One or two texts; for pre-tokenized input, the words of each."""


class SequenceEncoder:
    """The encoder of a tokenizer that also returns for each id its place in the text, its word and its sequence."""

    def __init__(self, post_processor: PostProcessor | None, trims: Sequence[Trim], names: Mapping[int, str]) -> None:
        """Build the encoder.

        Args:
            post_processor: The tokenizer's post-processor.
            trims: The passes in which the post-processor removes white space from the offsets of a single text.
            names: The token of each id of the model, as the vocabulary spells it.

        """
        self._post_processor = post_processor
        self._trims = trims
        self._names = names
        self._layouts: dict[tuple[bool, bool], Layout] = {}

    def encode(
        self,
        text: str,
        call: Call,
        guarded: Sequence[int],
        truncation: Truncation | None = None,
        *,
        add_special_tokens: bool,
    ) -> Encoded:
        """Encode one text.

        Args:
            text: The text.
            call: The resolved options, with the ids around the text.
            guarded: As for `Tokenizer.encode`.
            truncation: The bound on the ids; None truncates nothing.
            add_special_tokens: Whether the post-processor adds tokens, which decides how it trims offsets.

        """
        before, after = len(call.prefix), len(call.suffix)
        room = None if truncation is None else truncation.room(before + after)
        ids, offsets, called, words = call.encoder.encode_with_offsets(text, call.parse_special, guarded)
        call.check(ids)
        if truncation is not None and room is not None and room < len(ids):
            kept = truncation.kept(len(ids), room)
            called = [(i - kept.start, name) for i, name in called if kept.start <= i < kept.stop]
            ids, offsets, words = ids[kept], offsets[kept], words[kept]
        spans = self.trimmed(ids, offsets, called, [0], add_special_tokens=add_special_tokens)
        around = self.layout(pair=False, add_special_tokens=add_special_tokens).around(before, len(ids), after)
        return Encoded(
            [*call.prefix, *ids, *call.suffix],
            [*[(0, 0)] * before, *pairs(spans), *[(0, 0)] * after],
            around.type_ids,
            around.special_tokens_mask,
            [*[None] * before, *words.tolist(), *[None] * after],
            around.sequence_ids,
        )

    def encode_sequences(
        self,
        sequences: Mapping[str, str | Sequence[str]],
        call: Call,
        truncation: Truncation | None = None,
        *,
        add_special_tokens: bool,
        add_bos: bool | None = None,
        add_eos: bool | None = None,
    ) -> Encoded:
        """Encode one or two texts, or their words, as one sequence of ids.

        Args:
            sequences: The texts, each by the name of its argument, for errors; in place of a text its words.
            call: The resolved options.
            truncation: The bound on all ids; None truncates nothing.
            add_special_tokens: Whether the post-processor adds tokens.
            add_bos: As in `EncodeOptions`, for what stands before all texts.
            add_eos: As in `EncodeOptions`, for what stands after all texts.

        """
        places = self.layout(pair=len(sequences) == 2, add_special_tokens=add_special_tokens)
        found = [self.sequence(each, call, i, name) for i, (name, each) in enumerate(sequences.items())]
        if truncation is not None:
            n_added = places.n_added
            n_added += 0 if add_bos is None else len(call.prefix) - places.n_before
            n_added += 0 if add_eos is None else len(call.suffix) - places.n_after
            found = _cut(found, truncation, truncation.room(n_added))
        whole = process(self._post_processor, found, add_special_tokens=add_special_tokens)
        if add_bos is not None:
            end = self._end(call.prefix, whole.type_ids[:1])
            inner = whole.part(places.n_before, len(whole))
            whole = _rejoined([end, inner], whole, len(end) - places.n_before)
        if add_eos is not None:
            end = self._end(call.suffix, whole.type_ids[-1:])
            whole = _rejoined([whole.part(0, len(whole) - places.n_after), end], whole, 0)
        return Encoded(
            whole.ids, whole.offsets, whole.type_ids, whole.special_tokens_mask, whole.word_ids, whole.sequence_ids
        )

    def sequence(self, sequence: str | Sequence[str], call: Call, type_id: int = 0, name: str = "text") -> Encoding:
        """Encode a text, or its words, without the post-processor.

        Args:
            sequence: The text; or its words, each of which is encoded alone.
            call: The resolved options; `prefix` and `suffix` are not added.
            type_id: The type id of all tokens.
            name: The name of the text in errors.

        """
        parts = []
        if name != "words" and (isinstance(sequence, bytes) or not isinstance(sequence, Iterable)):
            raise TypeError(f"{name} must be a text or its words, not {type(sequence).__name__}")
        for number, word in enumerate([sequence] if isinstance(sequence, str) else several_texts(name, sequence)):
            try:
                ids, spans, called, pieces = call.encoder.encode_with_offsets(word, call.parse_special, ())
                call.check(ids)
            except TextError as error:
                where = name if isinstance(sequence, str) else f"{name}[{number}]"
                raise TextError(where + str(error).removeprefix("text")) from None
            names = [self._names.get(token_id, "") for token_id in ids]
            for i, taken in called:
                names[i] = taken
            numbers = pieces.tolist() if isinstance(sequence, str) else [number] * len(ids)
            parts.append(Encoding(ids, names, pairs(spans), numbers, type_ids=[type_id] * len(ids)))
        return parts[0] if len(parts) == 1 else Encoding.joined(parts)

    def trimmed(
        self,
        ids: Sequence[int] | NDArray[np.int32],
        spans: NDArray[np.int64],
        called: Iterable[tuple[int, str]],
        firsts: Sequence[int] | NDArray[np.int64],
        *,
        add_special_tokens: bool,
    ) -> NDArray[np.int64]:
        """Return the offsets of one or more single texts, trimmed as by the post-processor.

        Args:
            ids: The ids of all texts one after the other.
            spans: The (start, end) characters of each id; shape (n, 2).
            called: The (index, name) of ids whose token is named by the text that it took, not by the vocabulary.
            firsts: The index of each text's first id.
            add_special_tokens: Whether the post-processor adds tokens.

        """
        if not self._trims or not len(spans):
            return spans
        found, places = np.unique(np.asarray(ids), return_inverse=True)
        edges = blank_edges(self._names.get(token_id, "") for token_id in found.tolist())[places]
        for i, taken in called:
            edges[i] = blank_edges([taken])
        first = np.zeros(len(spans) + 1, np.bool_)
        first[np.asarray(firsts)] = True
        for keep_prefix_space, enclosed in self._trims:
            counted = first[:-1] & (not (enclosed and add_special_tokens))
            spans = trim_offsets(edges, spans, counted, keep_prefix_space=keep_prefix_space)
        return spans

    def layout(self, *, pair: bool, add_special_tokens: bool) -> Layout:
        """Return the layout of one text, or of a pair, among the tokens that the post-processor adds."""
        key = pair, add_special_tokens
        if (found := self._layouts.get(key)) is None:
            found = layout(self._post_processor, pair=pair, add_special_tokens=add_special_tokens)
            self._layouts[key] = found
        return found

    def _end(self, ids: Sequence[int], type_ids: Sequence[int]) -> Encoding:
        """Return an encoding of added tokens with these ids.

        Their type id is that of their neighbour, the first one in `type_ids`; 0 if this is empty.
        """
        return Encoding.added([(self._names.get(i, ""), i) for i in ids], type_ids[0] if type_ids else 0)


def _cut(sequences: Sequence[Encoding], truncation: Truncation, room: int) -> list[Encoding]:
    """Return the parts of one or two sequences that remain if both together may have `room` ids."""
    second = len(sequences[1]) if len(sequences) == 2 else None
    lengths = lengths_after_truncation(len(sequences[0]), second, room, truncation.strategy)
    kept = [truncation.kept(len(each), length) for each, length in zip(sequences, lengths, strict=False)]
    return [each.part(at.start, at.stop) for each, at in zip(sequences, kept, strict=True)]


def _rejoined(parts: Sequence[Encoding], whole: Encoding, shift: int) -> Encoding:
    """Join encodings to a new one, whose sequence ranges are those of `whole`, moved by `shift` tokens."""
    made = Encoding.joined(parts)
    made.sequence_ranges = {i: range(at.start + shift, at.stop + shift) for i, at in whole.sequence_ranges.items()}
    return made


def pairs(spans: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the rows of an array of shape (n, 2) as a list of tuples."""
    starts, ends = spans.T.tolist()
    return list(zip(starts, ends, strict=True))
