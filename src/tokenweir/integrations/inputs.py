"""The forms of inputs that `tokenizers`' encoding methods take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenweir.encode.encoding.sequence_encoder import Sequences


class Fallback(Exception):
    """A call falls back to the original library; the message is the reason."""


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
