"""Digests of messages, by which a cache looks up an earlier prompt that may be similar.

A digest never decides that two prompts are equal: the comparison of their texts and guards does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

_encode = msgspec.json.Encoder().encode


def digest(value: object) -> int:
    """Return a hash of JSON-like data, or of a tuple of such data; equal data has equal hashes within one process."""
    return hash(tuple(map(_part, value))) if isinstance(value, tuple) else hash(_part(value))


def delivered(before: int, fingerprint: bytes) -> int:
    """Return the digest of a conversation that ends with an assistant message that was delivered to a client.

    It is valid only within this process, and differs from the digest that `Messages.text_chain` has for the same
    conversation.

    Args:
        before: The digest of the messages before it, as `Messages.text_chain` has it.
        fingerprint: The result of `answer_identity.fingerprint` for the delivered message.

    """
    return hash((before, fingerprint))


def _part(value: object) -> object:
    """Return a hashable stand-in for data: a string itself, the JSON of other data, or nested tuples if it has no JSON."""
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
