"""Bounds on the cost of JSON besides its bytes: the number and depth of its values, and slow numbers. No I/O."""

from __future__ import annotations

from math import isinf

import numpy as np


def count_outside_strings(data: bytes, signs: bytes) -> int:
    """Return how often any of the bytes in `signs` occurs outside the strings of a JSON text.

    The result is meaningless if the text is not valid JSON.
    """
    return sum(map(len, _outside_strings(data, signs)))


def has_more_outside_strings(data: bytes, signs: bytes, most: int) -> bool:
    """Return whether bytes of `signs` occur more than `most` times in all outside the strings of a JSON text."""
    if sum(map(data.count, signs)) <= most:
        return False
    return count_outside_strings(data, signs) > most


def is_deeper(data: bytes, most: int) -> bool:
    """Return whether arrays and objects of a JSON text are nested more than `most` deep.

    The result is meaningless if the text is not valid JSON.
    """
    if sum(map(data.count, b"[{")) <= most:
        return False
    brackets = np.frombuffer(b"".join(_outside_strings(data, b"[]{}")), np.uint8)
    steps = (brackets & 2).astype(np.int32) - 1  # the bit that the opening ones have
    return int(np.cumsum(steps).max(initial=0)) > most


def has_more_strings(data: bytes, most: int) -> bool:
    """Return whether a JSON text has more than `most` strings, the keys of its objects included."""
    if data.count(b'"') <= 2 * most:
        return False
    return _unescaped(data).count(b'"') > 2 * most


def _outside_strings(data: bytes, signs: bytes) -> list[bytes]:
    """Return the bytes of `signs` in a JSON text, without those in its strings, as pieces in order."""
    kept = _unescaped(data).translate(None, bytes(set(range(256)) - set(signs) - set(b'"')))
    return kept.replace(b'""', b"").split(b'"')[::2]  # the replaced are strings without any of the signs


def _unescaped(data: bytes) -> bytes:
    """Return a JSON text without escaped quotes and backslashes, so that each quote left begins or ends a string."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"")


def as_float(text: str) -> float:
    """Convert a number of JSON to float; raise `ValueError` if it is out of range.

    It serves as msgspec's `float_hook`, because msgspec is slow to convert large numbers.
    """
    if isinf(value := float(text)):
        raise ValueError("Number out of range")
    return value
