"""Digests of messages: what proposes an earlier prompt. They never decide: the text and its guards do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def digest(value: object) -> int:
    """Return the digest of JSON-like data, the same for equal data in one process.

    Python's own hash is keyed by process, and that of a str is computed once in its life. So a message that a loop
    holds on to costs almost nothing from its second turn on.
    """
    return hash(_hashable(value))


def chain(start: int, messages: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the digest of each prefix of a conversation, by the texts of its messages.

    Args:
        start: The digest of all that comes before the messages: template, tools, variables.
        messages: The messages.

    """
    digests = []
    for message in messages:
        start = hash((start, message_digest(message)))
        digests.append(start)
    return tuple(digests)


def message_digest(message: Mapping[str, Any]) -> int:
    """Return the digest of a message's own texts; calls are left out, because reading them costs more than it tells."""
    texts: list[object] = [value for value in message.values() if type(value) is str]
    content = message.get("content")
    if content is not None and type(content) is not str:
        texts.append(_hashable(content))
    return hash(tuple(texts))


def _hashable(value: object) -> object:
    kind = type(value)
    if kind is dict:  # the exact types first: most values have them, and other checks cost more than the hash
        return tuple([(key, item if type(item) is str else _hashable(item)) for key, item in value.items()])  # type: ignore[attr-defined]
    if kind is list:
        return tuple([item if type(item) is str else _hashable(item) for item in value])  # type: ignore[attr-defined]
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return tuple([(key, _hashable(item)) for key, item in value.items()])
    if isinstance(value, Sequence):
        return tuple([_hashable(item) for item in value])
    return kind.__name__
