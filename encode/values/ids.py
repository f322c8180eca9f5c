"""Checks and conversions of the ids that callers pass: lists, tuples and arrays, and the errors for anything else."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokenweir.encode.values.encoded import Ragged

Ids = Sequence[int] | NDArray[np.integer[Any]]
"""The ids of one text."""


_NO_IDS = (str, bytes, bytearray, set, frozenset, dict, UserDict)
"""Types that are refused although they would pass as sequences of ids: str if empty, bytes, and unordered containers. A
transformers tokenizer returns a UserDict."""


def as_sequence(ids: Ids) -> Sequence[int]:
    """Convert ids to a sequence that the core reads: an array to a list, anything else unchanged.

    The items are not checked. The core raises a `TypeError` for bad ones, for which `not_ids` builds a better message.

    Raises:
        TypeError: An array is not one-dimensional or not of integers, or the type never holds ids.

    """
    if isinstance(ids, np.ndarray):
        if not _holds_ids(ids):
            raise not_ids(ids)
        plain: list[int] = ids.tolist()
        return plain
    if type(ids) is not list and isinstance(ids, _NO_IDS):
        raise not_ids(ids)
    return ids


_READ_IN_PLACE = frozenset(np.dtype(name) for name in ("int32", "uint32", "int64"))


def in_place(ids: Ids) -> Ids:
    """Return ids in a form that the core reads: an array that it reads directly or any other sequence, both unchanged.

    Such an array is one-dimensional, contiguous, and of int32, uint32 or int64. Other arrays of integers become lists.
    The items of sequences are not checked.

    Raises:
        TypeError: An array is not one-dimensional or not of integers, or the type never holds ids.

    """
    if isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype in _READ_IN_PLACE and ids.flags.c_contiguous:
        return ids
    return as_sequence(ids)


def as_ids(given: Any, name: str) -> Sequence[int]:
    """Return the ids of any iterable or array, on any device, as a list or an array.

    Checks only the last item of a list, because a prompt may have many.

    Args:
        given: The ids.
        name: The name of the parameter, for errors.

    Raises:
        TypeError: `given` are not ids.

    """
    if isinstance(given, np.ndarray):
        fits = _holds_ids(given)
    else:
        if hasattr(given, "tolist"):  # CuPy and PyTorch
            given = given.tolist()
        elif isinstance(given, Iterable) and not isinstance(given, str | bytes | list):
            given = list(given)
        fits = isinstance(given, list) and (not given or hasattr(given[-1], "__index__"))
    if not fits:
        raise no_sequence(given, name)
    ids: Sequence[int] = given
    return ids


def _holds_ids(array: NDArray[Any]) -> bool:
    return array.ndim == 1 and array.dtype.kind in "iu"


def not_ids(given: object) -> TypeError:
    """Return the error to raise for an argument of `decode` that is not the ids of one text."""
    if isinstance(given, str | bytes):
        return TypeError(f"decode() takes token ids, not {type(given).__name__}; encode() takes text")
    if isinstance(given, Ragged):
        return TypeError("decode() takes the ids of one text, not a Ragged; decode_batch() takes those of many")
    return no_sequence(given, "ids", of_many="; decode_batch() takes the ids of many texts")


def no_sequence(given: object, name: str, of_many: str = "") -> TypeError:
    """Return the error to raise for an argument that is not a sequence of ids.

    Args:
        given: The argument.
        name: Its name, for the message.
        of_many: A hint that ends the message for a sequence of sequences.

    """
    if isinstance(given, int | np.integer):
        return TypeError(f"{name} must be a sequence of int, not one {type(given).__name__}: write [{given}]")
    if isinstance(given, np.ndarray):
        return TypeError(f"{name} must be one-dimensional integers, not {given.dtype} of shape {given.shape}")
    if isinstance(given, Iterable) and not isinstance(given, _NO_IDS):
        for place, token_id in enumerate(given):
            if not hasattr(token_id, "__index__"):
                hint = of_many if isinstance(token_id, Sequence) else ""
                return TypeError(f"{name}[{place}] must be int, not {type(token_id).__name__}{hint}")
    return TypeError(f"{name} must be a sequence of int, not {type(given).__name__}")
