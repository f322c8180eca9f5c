"""A step that adds ids to batches, as the engines that people run corpora on pass them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.base.options import EncodeOptions
from tokenweir.encode.errors import CorpusError
from tokenweir.encode.values.encoded import Ragged

if TYPE_CHECKING:
    import pyarrow

    from tokenweir.encode.tokenizer import Tokenizer


@dataclass
class Encode:
    """Callable that adds a column of ids to a batch: an Arrow table or record batch, a dict of arrays, or a pandas frame.

    A pickled one has the tokenizer's path and hash, not its tables, if the tokenizer was read from files. Each process then reads
    it once. Ids are a list of int32 in Arrow, and an array of objects that are int32 arrays elsewhere.

    Attributes:
        tokenizer: The tokenizer.
        column: The column of texts.
        out: The new column; an existing one is refused.
        append_eos: As `add_eos` of `Tokenizer.encode`.
        prepend_bos: As `add_bos` of `Tokenizer.encode`.
        add_special_tokens: As in `Tokenizer.encode`.
        parse_special: As in `Tokenizer.encode`.
        max_tokens: As in `Tokenizer.encode`.
        keep: The columns that stay in the batch; None keeps all.
        invalid: What becomes of a row that is null or no text: "error" raises a `CorpusError` with its row, "null" gives no ids.
        threads: The most threads of a call, since engines have a process for each core; None chooses a number.
        encoder: Makes another encoder of the tokenizer in each process, such as `tokenweir.gpu.GpuEncoder`.

    """

    tokenizer: Tokenizer
    column: str = "text"
    out: str = field(default="input_ids", kw_only=True)
    append_eos: bool | None = field(default=None, kw_only=True)
    prepend_bos: bool | None = field(default=None, kw_only=True)
    add_special_tokens: bool = field(default=True, kw_only=True)
    parse_special: bool = field(default=True, kw_only=True)
    max_tokens: int | None = field(default=None, kw_only=True)
    keep: tuple[str, ...] | None = field(default=None, kw_only=True)
    invalid: Literal["error", "null"] = field(default="error", kw_only=True)
    threads: int | None = field(default=1, kw_only=True)
    encoder: Callable[[Tokenizer], Any] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.invalid not in ("error", "null"):
            raise ValueError(f"invalid must be 'error' or 'null', not {self.invalid!r}")
        if self.encoder is not None and self.max_tokens is not None:
            raise ValueError("max_tokens does not go with encoder")
        self._made: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_made": None}  # an encoder stays in its process

    def __call__(self, batch: Any) -> Any:
        """Return the batch with the column of ids, of the type that it has.

        Raises:
            CorpusError: A row is null or no text; the message has its number in the batch and the column.
            KeyError: There is no such column.
            TypeError: The batch has another type.
            ValueError: There is a column `out` already.

        """
        if hasattr(batch, "schema"):  # of pyarrow
            self._check(batch.schema.names)
            ids = self.encode(batch.column(self.column))
            kept = (
                batch if self.keep is None else batch.select([name for name in batch.schema.names if name in self.keep])
            )
            return kept.append_column(self.out, ids)
        if isinstance(batch, Mapping):
            self._check(batch)
            kept = {name: values for name, values in batch.items() if self.keep is None or name in self.keep}
            return {**kept, self.out: self._rows(np.asarray(batch[self.column], object))}
        if hasattr(batch, "assign"):  # of pandas
            self._check(batch.columns)
            rows = self._rows(batch[self.column].to_numpy(object))
            kept = batch if self.keep is None else batch[[name for name in batch.columns if name in self.keep]]
            return kept.assign(**{self.out: rows})
        raise TypeError(f"Encode() takes tables, record batches, dicts and frames, not {type(batch).__name__}")

    def encode(self, texts: Any) -> pyarrow.ListArray:
        """Return the ids of an Arrow array of texts, as a list of int32 with nulls where `invalid` allows them.

        Raise `CorpusError` for a row that is null or no text, unless `invalid` is "null", and `ValueError` for more ids
        than int32 offsets can count.
        """
        import pyarrow

        if pyarrow.types.is_dictionary(texts.type):
            texts = texts.cast(texts.type.value_type)
        valid, rows = self._encoded(texts)
        offsets = rows.offsets if valid is None else rows.offsets[np.cumsum([0, *valid])]
        if offsets[-1] > np.iinfo(np.int32).max:
            raise ValueError(f"a batch has {offsets[-1]:,} ids; pass smaller ones")
        mask = None if valid is None else pyarrow.array(~valid)
        return pyarrow.ListArray.from_arrays(pyarrow.array(offsets.astype(np.int32)), rows.ids, mask=mask)

    def _check(self, names: Any) -> None:
        if self.column not in names:
            raise KeyError(self.column)
        if self.out in names:
            raise ValueError(f"there is a column {self.out!r} already")

    def _rows(self, texts: NDArray[Any]) -> NDArray[Any]:
        valid, rows = self._encoded([*texts])
        made = np.full(len(texts), None, object)
        places = range(len(texts)) if valid is None else np.flatnonzero(valid)
        for place, row in zip(places, rows, strict=True):
            made[place] = row
        return made

    def _encoded(self, texts: Any) -> tuple[NDArray[np.bool_] | None, Ragged]:
        """Encode texts; return a mask of the valid rows, None if all are valid, and the ids of these rows."""
        try:
            return None, self._batch(texts)
        except (TypeError, ValueError) as error:
            values = plain(texts)
            whys = [why_invalid(text) for text in values]
            number = next((number for number, why in enumerate(whys) if why is not None), None)
            if number is None:
                raise
            if self.invalid == "error":
                raise CorpusError(f"row {number}: {self.column!r}: {whys[number]}") from error
        valid = np.array([why is None for why in whys])
        return valid, self._batch([values[place] for place in np.flatnonzero(valid)])

    def _batch(self, texts: Any) -> Ragged:
        options = EncodeOptions(add_special_tokens=self.add_special_tokens, parse_special=self.parse_special)
        options["add_bos"], options["add_eos"] = self.prepend_bos, self.append_eos
        if self.encoder is None:
            return self.tokenizer.encode_batch(texts, threads=self.threads, max_tokens=self.max_tokens, **options)
        if self._made is None:
            self._made = self.encoder(self.tokenizer)
        made: Ragged = self._made.encode_batch(texts, **options).to_host()
        return made


def plain(texts: Any) -> list[Any]:
    """Convert texts to a list. Arrow strings become bytes, because their UTF-8 may be invalid; other items are kept."""
    if not hasattr(texts, "to_pylist"):
        return list(texts)
    import pyarrow
    from pyarrow import types

    is_text = types.is_string(texts.type) or types.is_large_string(texts.type) or types.is_string_view(texts.type)
    found: list[Any] = (texts.cast(pyarrow.large_binary()) if is_text else texts).to_pylist()
    return found


def why_invalid(text: Any) -> str | None:
    """Return the reason why a value cannot be encoded as a text; None if it can."""
    if text is None or (isinstance(text, float) and isnan(text)):  # pandas' missing text
        return "is missing or null"
    if not isinstance(text, str | bytes):
        return f"is {type(text).__name__}, not a text"
    try:
        _ = text.encode() if isinstance(text, str) else text.decode()
    except UnicodeEncodeError as error:
        return f"has a lone surrogate U+{ord(error.object[error.start]):04X} at character {error.start}"
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None
