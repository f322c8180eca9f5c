"""Digests of messages: what proposes an earlier prompt. They never decide: the text and its guards do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate


def digest(value: object) -> int:
    """Return the digest of JSON-like data, the same for equal data in one process."""
    return hash(_hashable(value))


def chain(start: int, digests: Iterable[int]) -> tuple[int, ...]:
    """Return the digest of each prefix of a conversation, the empty one included.

    Args:
        start: The digest of all that comes before the messages: template, tools, variables.
        digests: The digests of the messages, as `Messages.text_digests` has them.

    """
    return tuple(accumulate(digests, lambda before, one: hash((before, one)), initial=start))


def delivered(before: int, fingerprint: bytes) -> int:
    """Return the digest of a conversation whose last message was delivered.

    Args:
        before: The digest of the conversation before it, as `chain` has it.
        fingerprint: What `answer_identity.fingerprint` gives of the message.

    """
    return hash((before, fingerprint))


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
