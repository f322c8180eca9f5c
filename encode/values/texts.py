"""Checks and conversions of the texts that callers pass: lists, numpy arrays, Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np


class ArrowStrings(Protocol):
    """An Arrow array of strings, from any library: an object with `__arrow_c_array__`."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class ArrowStringChunks(Protocol):
    """A chunked Arrow array of strings: an object with `__arrow_c_stream__`."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Texts = Iterable[str | bytes] | ArrowStrings | ArrowStringChunks
"""The texts of a batch: str, or bytes that are UTF-8, in any iterable or a numpy array; or Arrow strings."""


def is_arrow(texts: object) -> bool:
    """Return whether an object has the C interfaces of an Arrow array or chunked array."""
    return any(hasattr(texts, f"__arrow_c_{kind}__") for kind in ("array", "stream", "device_array"))


def several_texts(option: str, texts: object) -> tuple[str, ...]:
    """Return the value of an option that takes several texts as a tuple.

    Raises:
        TypeError: The value is a single text, is not iterable, or has items that are not texts; the message has the name
            `option`.

    """
    if isinstance(texts, str):
        raise TypeError(f"{option} must be several texts, not one str: write {option}=[{texts!r}]")
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        raise TypeError(f"{option} must be several texts, not {type(texts).__name__}")
    listed = tuple(texts)
    for place, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"{option}[{place}] must be str, not {type(text).__name__}")
    return listed


def for_core(texts: object) -> Any:
    """Convert texts to what the core takes: a list, or an Arrow array, which is returned unchanged.

    Raises:
        TypeError: The argument is one text, or not iterable.
        ValueError: A numpy array has more than one dimension.

    """
    if isinstance(texts, str | bytes):
        kind = type(texts).__name__
        raise TypeError(f"texts must be several texts, not one {kind}: write encode_batch([text])")
    if is_arrow(texts):
        return texts
    if isinstance(texts, np.ndarray):
        if texts.ndim != 1:
            raise ValueError(f"an array of texts has one dimension, not {texts.ndim}")
        return texts.tolist()
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping):  # iterating a mapping would encode its keys
        raise TypeError(f"texts must be several texts, not {type(texts).__name__}")
    return list(texts)
