"""Comparison of messages: does a client send back the assistant message that was delivered to it?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from tokenweir.templates.messages import REASONING_FIELDS


def identity(message: Mapping[str, Any]) -> object:
    """Return a value that is equal for two messages that say the same: role, content, reasoning and tool calls.

    Compare the identity of a delivered message with that of a message in a later request to tell whether the client sent
    it back unchanged. Content and reasoning are compared as strings, and calls by name and JSON value. Ids of calls are
    left out, because clients rename them.
    """
    reasoning = next((message[name] for name in REASONING_FIELDS if message.get(name)), "")
    calls = []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call) if isinstance(call, Mapping) else {}
        arguments = function.get("arguments") if isinstance(function, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        calls.append((name, _canonical(arguments)))
    return message.get("role"), _text(message.get("content")), _text(reasoning), tuple(calls)


def fingerprint(message: Mapping[str, Any]) -> bytes:
    """Return a digest of 16 bytes of the `identity` of a message; equal for messages that say the same."""
    return blake2b(repr(identity(message)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _canonical(arguments: object) -> str:
    """Return a call's arguments as JSON with sorted keys, or as they are where they have no such form."""
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
        return json.dumps(value, sort_keys=True)  # unlike msgspec's, in ASCII: a lone surrogate is an escape
    except (TypeError, ValueError, RecursionError):
        return arguments if isinstance(arguments, str) else type(arguments).__name__


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))
