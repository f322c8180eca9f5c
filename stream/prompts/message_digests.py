"""Digests of messages: what proposes an earlier prompt. They never decide: the text and its guards do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

_encode = msgspec.json.Encoder().encode


def digest(value: object) -> int:
    """Return the digest of JSON-like data, or of a tuple of such data, the same for equal data in one process."""
    return hash(tuple(map(_part, value))) if isinstance(value, tuple) else hash(_part(value))


def delivered(before: int, fingerprint: bytes) -> int:
    """Return the digest of a conversation whose last message was delivered.

    Args:
        before: The digest of the conversation before it, as `chain` has it.
        fingerprint: What `answer_identity.fingerprint` gives of the message.

    """
    return hash((before, fingerprint))


def _part(value: object) -> object:
    """Return the data, or its JSON, which is hashed faster than objects are walked."""
    if isinstance(value, str):
        return value
    try:
        return _encode(value)
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError):  # it is not JSON
        return _hashable(value)


def _hashable(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):  # without the slow question for an abstract class
        return tuple([_hashable(item) for item in value])
    if isinstance(value, dict | Mapping):
        return tuple([(key, _hashable(item)) for key, item in value.items()])
    if isinstance(value, Sequence):
        return tuple([_hashable(item) for item in value])
    return type(value).__name__
