"""Checks of the inputs that the encoding methods of `tokenizers` take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenweir.encode.encoding.sequence_encoder import Sequences


class Fallback(Exception):
    """Raised for a call that tokenweir does not reproduce exactly, so that the original library runs it.

    The message is the reason.
    """


def listed(inputs: Any) -> Sequence[Any]:
    """Return the inputs of a batch; raise `TypeError` if they are not a list or tuple."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"inputs of type {type(inputs).__name__}")
    return inputs


def sequence_of(given: Any, is_pretokenized: bool) -> str | Sequence[str]:
    """Return one input sequence.

    Raise `TypeError` if it is not a str, or, if `is_pretokenized`, not a list or tuple of str.
    """
    if is_pretokenized:
        if isinstance(given, list | tuple) and all(isinstance(word, str) for word in given):
            return given
    elif isinstance(given, str):
        return given
    raise TypeError(f"a sequence of type {type(given).__name__}")


def sequences_of(given: Any, is_pretokenized: bool) -> Sequences:
    """Return an input of a batch as one sequence or two, each checked by `sequence_of`; an input of two is a pair."""
    if not isinstance(given, str) and isinstance(given, list | tuple):
        if is_pretokenized and all(isinstance(word, str) for word in given):
            return (given,)
        if len(given) == 2:
            return [sequence_of(each, is_pretokenized) for each in given]
    return (sequence_of(given, is_pretokenized),)
