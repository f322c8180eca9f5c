"""Texts in the forms that callers have them: lists, numpy arrays, Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np


class ArrowStrings(Protocol):
    """An Arrow array of strings, from any library: what has `__arrow_c_array__`."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...


class ArrowStringChunks(Protocol):
    """The same in chunks: what has `__arrow_c_stream__`."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


Texts = Iterable[str | bytes] | ArrowStrings | ArrowStringChunks
"""What is encoded at once: str, or bytes that are UTF-8, in any iterable or a numpy array, or strings of Arrow."""


def is_arrow(texts: object) -> bool:
    """Whether they are an array of Arrow, or several, by one of its interfaces."""
    return any(hasattr(texts, f"__arrow_c_{kind}__") for kind in ("array", "stream", "device_array"))


def several_texts(option: str, texts: object) -> tuple[str, ...]:
    """The texts of an option that takes several.

    Raises:
        TypeError: They are one text, whose characters would count, or no texts; the message has the option's name.

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
    """The texts as the core takes them: a list, or what Arrow's interface has.

    Raises:
        TypeError: They are one text, or none.
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
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping):  # whose keys nobody means
        raise TypeError(f"texts must be several texts, not {type(texts).__name__}")
    return list(texts)
