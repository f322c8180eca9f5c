"""Bounds on the cost of JSON besides its bytes: the number of its values, and numbers that are slow to convert. No I/O."""

from __future__ import annotations

from math import isinf


def count_outside_strings(data: bytes, signs: bytes) -> int:
    """Return how often the bytes `signs` occur outside the strings of a JSON text; any number if it is not valid JSON."""
    kept = _unescaped(data).translate(None, bytes(set(range(256)) - set(signs) - set(b'"')))
    kept = kept.replace(b'""', b"")  # strings without any of the signs
    return sum(map(len, kept.split(b'"')[::2]))


def has_more_outside_strings(data: bytes, signs: bytes, most: int) -> bool:
    """Return whether the bytes `signs` occur more often than `most` times outside the strings of a JSON text."""
    if sum(map(data.count, signs)) <= most:
        return False
    return count_outside_strings(data, signs) > most


def has_more_strings(data: bytes, most: int) -> bool:
    """Return whether a JSON text has more than `most` strings, the keys of its objects included."""
    if data.count(b'"') <= 2 * most:
        return False
    return _unescaped(data).count(b'"') > 2 * most


def _unescaped(data: bytes) -> bytes:
    """Return a JSON text in which each quote begins or ends a string."""
    return data.replace(b"\\\\", b"").replace(b'\\"', b"")


def as_float(text: str) -> float:
    """Return a number of JSON, as `float_hook` of msgspec, whose own conversion of 1e300 takes 20 times as long.

    A number out of range raises `ValueError`.
    """
    if isinf(value := float(text)):
        raise ValueError("Number out of range")
    return value
