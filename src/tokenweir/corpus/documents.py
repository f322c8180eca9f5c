"""Rows to ids: texts, or conversations through a chat template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from tokenweir.corpus.encode import plain, why_invalid
from tokenweir.corpus.inputs import InputPart
from tokenweir.corpus.reading import fields_of, place, read_columns
from tokenweir.encode.base.options import EncodeOptions
from tokenweir.encode.errors import CorpusError, TemplateError, TextError
from tokenweir.encode.values.encoded import Ragged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokenweir.encode.tokenizer import Tokenizer
    from tokenweir.templates.chat_template import ChatTemplate


MAX_NAMES = 20
"""The most names of fields in an error."""


class DocumentBatch(NamedTuple):
    """A batch of encoded documents.

    Attributes:
        ids: The ids of each document.
        mask: uint8 for each id, 1 for those that a model learns to generate; None for texts, and if not requested.
        skipped: Number of rows that were left out because they are missing or null.
        kept: The kept columns of the documents, as Arrow arrays.

    """

    ids: Ragged
    mask: NDArray[np.uint8] | None
    skipped: int = 0
    kept: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class DocumentEncoder:
    """Encoder of the documents of a corpus, with its settings; every process gets a pickled copy.

    Attributes:
        tokenizer: The tokenizer.
        column: The column with texts, or with lists of messages.
        options: Options of `Tokenizer.encode`, for texts.
        template: Renders the messages, with the tools of the column `tools` if there is one; None if the documents are
            texts.
        loss_mask: Also return the loss mask; only with a template.
        skip_null: Leave out rows that are missing or null, instead of raising.
        keep: Other columns that stay with the documents.

    """

    tokenizer: Tokenizer
    column: str
    options: EncodeOptions = field(default_factory=EncodeOptions)
    template: ChatTemplate | None = None
    loss_mask: bool = False
    skip_null: bool = False
    keep: tuple[str, ...] = ()

    def encode(self, part: InputPart) -> Iterator[DocumentBatch]:
        """Read and encode the documents of a part of an input file; yield them in batches.

        Raises:
            CorpusError: A document cannot be encoded; the message has its position.

        """
        optional = [] if self.template is None else ["tools"]
        for values, numbers in read_columns(part, [*dict.fromkeys([self.column, *self.keep])], optional):
            rows = len(numbers)
            if self.skip_null:
                values, numbers = _without_null_rows(values, self.column, numbers)
            if self.template is None:
                ids, mask = self._texts(values[self.column], part, numbers), None
            else:
                ids, mask = self._conversations(values[self.column], values.get("tools"), part, numbers)
            yield DocumentBatch(ids, mask, rows - len(numbers), {name: _in_arrow(values[name]) for name in self.keep})

    def _texts(self, texts: Any, part: InputPart, numbers: Sequence[int]) -> Ragged:
        try:
            return self.tokenizer.encode_batch(texts, threads=1, **self.options)
        except (TypeError, ValueError) as error:
            for number, text in zip(numbers, plain(texts), strict=True):
                if (why := why_invalid(text)) is not None:
                    if text is None and part.kind == "jsonl" and (names := fields_of(part, number)):
                        why += f"; the line has {', '.join(names[:MAX_NAMES])}"
                    raise CorpusError(f"{place(part, number)}: {self.column!r}: {why}") from error
            raise CorpusError(f"{part.input.path}: column {self.column!r}: {error}") from error

    def _conversations(
        self, messages: Any, tools: Any, part: InputPart, numbers: Sequence[int]
    ) -> tuple[Ragged, NDArray[np.uint8] | None]:
        rows: list[list[int]] = []
        masks: list[list[int]] = []
        given = zip(_plain(messages), _plain(tools) if tools is not None else [None] * len(messages), strict=True)
        for number, (conversation, schemas) in zip(numbers, given, strict=True):
            try:
                row, mask = self._conversation(conversation, schemas)
            except (TemplateError, TextError) as error:
                raise CorpusError(f"{place(part, number)}: {error}") from error
            rows.append(row)
            masks.append(mask)
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        ids = np.fromiter((i for row in rows for i in row), np.int32, int(offsets[-1]))
        mask_values = (
            np.fromiter((i for mask in masks for i in mask), np.uint8, int(offsets[-1])) if self.loss_mask else None
        )
        return Ragged(ids, offsets), mask_values

    def _conversation(self, messages: Any, tools: Any) -> tuple[list[int], list[int]]:
        assert self.template is not None
        if not isinstance(messages, list):
            raise TemplateError(f"{self.column!r} is {type(messages).__name__}, not a list of messages")
        prompt = self.template.render(
            messages, tools=tools or None, add_generation_prompt=False, find_generated=self.loss_mask
        )
        return prompt.encode_with_mask(self.tokenizer) if self.loss_mask else (prompt.encode(self.tokenizer), [])


def _without_null_rows(
    values: Mapping[str, Any], column: str, numbers: Sequence[int]
) -> tuple[Mapping[str, Any], Sequence[int]]:
    """Leave out the rows in which `column` is null.

    Args:
        values: The values of the rows, by column.
        column: The column.
        numbers: The numbers of the rows.

    Returns:
        The values and the numbers of the other rows.

    """
    array = values[column]
    is_arrow = hasattr(array, "is_valid")
    if (array.null_count if is_arrow else array.count(None)) == 0:
        return values, numbers
    valid = array.is_valid().to_pylist() if is_arrow else [value is not None for value in array]
    there = [number for number, is_there in enumerate(valid) if is_there]
    kept = {
        name: rows.filter(array.is_valid()) if is_arrow else [rows[number] for number in there]
        for name, rows in values.items()
    }
    return kept, [numbers[number] for number in there]


def _in_arrow(values: Any) -> Any:
    """Return a kept column as an Arrow array. Of JSON's values, which may be of any type, all but strings become their JSON."""
    if hasattr(values, "to_pylist"):
        return values
    import pyarrow

    texts = (
        value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode() for value in values
    )
    return pyarrow.array(texts, pyarrow.large_string())


def _plain(values: Any) -> list[Any]:
    """Return a column as a list of plain JSON values, without the nulls that Arrow adds for missing fields of structs."""
    return [_without_nulls(value) for value in values.to_pylist()] if hasattr(values, "to_pylist") else values


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None or name == "content"}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
