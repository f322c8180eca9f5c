"""The inputs of `tokenizers`' encoding methods: their forms, their ids, and what truncation leaves of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from tokenweir.encode.encoding.columns import Encoding as Columns
from tokenweir.encode.encoding.columns import lengths_after_truncation
from tokenweir.encode.encoding.sequence_encoder import Sequences
from tokenweir.encode.tokenizer import Tokenizer

OFF = frozenset(["", "off", "false", "f", "no", "n", "0"])
"""Values of TOKENIZERS_PARALLELISM that mean one thread."""


class Fallback(Exception):
    """A call goes to the original library; the message is the reason."""


def listed(inputs: Any) -> Sequence[Any]:
    """Check the inputs of a batch."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"inputs of type {type(inputs).__name__}")
    return inputs


def sequence_of(given: Any, is_pretokenized: bool) -> str | Sequence[str]:
    """Check one sequence."""
    if is_pretokenized:
        if isinstance(given, list | tuple) and all(isinstance(word, str) for word in given):
            return given
    elif isinstance(given, str):
        return given
    raise TypeError(f"a sequence of type {type(given).__name__}")


def sequences_of(given: Any, is_pretokenized: bool) -> Sequences:
    """Check an input of a batch: a sequence, or a pair of them."""
    if not isinstance(given, str) and isinstance(given, list | tuple):
        if is_pretokenized and all(isinstance(word, str) for word in given):
            return (given,)
        if len(given) == 2:
            return [sequence_of(each, is_pretokenized) for each in given]
    return (sequence_of(given, is_pretokenized),)


def bare_ids(tokenizer: Tokenizer, inputs: Sequence[Sequences]) -> list[list[list[int]]]:
    """Return the ids of each sequence of each input, without added ones."""
    if len(inputs) == 1 and len(whole := [each for each in inputs[0] if isinstance(each, str)]) == len(inputs[0]):
        return [[tokenizer.encode(each, add_special_tokens=False) for each in whole]]
    texts = [word for given in inputs for each in given for word in ([each] if isinstance(each, str) else each)]
    serial = os.environ.get("TOKENIZERS_PARALLELISM", "on").lower() in OFF
    rows = tokenizer.encode_batch(texts, add_special_tokens=False, threads=1 if serial else None)
    starts = rows.offsets.tolist()
    ids = rows.ids.tolist()
    found, at = [], 0
    for given in inputs:
        parts = []
        for each in given:
            n = 1 if isinstance(each, str) else len(each)
            parts.append(ids[starts[at] : starts[at + n]])
            at += n
        found.append(parts)
    return found


def lengths(parts: Sequence[Sized], limit: int, truncation: Mapping[str, Any]) -> tuple[int, int]:
    """Return the lengths to which one sequence or two are truncated."""
    second = len(parts[1]) if len(parts) == 2 else None
    return lengths_after_truncation(len(parts[0]), second, limit, truncation["strategy"])


def truncated(ids: Sequence[list[int]], limit: int, truncation: Mapping[str, Any]) -> list[list[int]]:
    """Return the ids that truncation keeps of one sequence or two."""
    kept = []
    for part, length in zip(ids, lengths(ids, limit, truncation), strict=False):
        if 0 < length < len(part) and truncation["stride"] >= length:
            raise Fallback("stride is not less than max_length")
        cut = len(part) - length if truncation["direction"] == "left" and length < len(part) else 0
        kept.append(part[cut : cut + length])
    return kept


def truncate(parts: Sequence[Columns], limit: int, truncation: Mapping[str, Any]) -> None:
    """Truncate one sequence or two, with all columns."""
    for part, length in zip(parts, lengths(parts, limit, truncation), strict=False):
        part.truncate(length, stride=truncation["stride"], side=truncation["direction"])
