"""Identity of an answer: what tells whether a client sends back a message that was delivered to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from tokenweir.templates.messages import REASONING_FIELDS


def identity(message: Mapping[str, Any]) -> object:
    """Return what tells whether a client sends back a message that was delivered to it.

    That is its content and reasoning as strings, and its calls by name and JSON value; clients rename the ids of calls.
    """
    reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name)), "")
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                pass
        name = function.get("name") if isinstance(function, Mapping) else None
        calls.append((name, msgspec.json.encode(arguments, order="sorted")))
    return message.get("role"), _text(message.get("content")), _text(reasoning), tuple(calls)


def fingerprint(message: Mapping[str, Any]) -> bytes:
    """Return a digest of the `identity` of a message, which takes no memory of its text."""
    return blake2b(repr(identity(message)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))
