"""Leftovers of other servers, gateways and clients in messages of Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOREIGN_FIELDS = frozenset(
    {"reasoning_details", "thinking_blocks", "reasoning_opaque", "reasoning_signature", "thought_signature"}
    | {"provider_specific_fields", "extra_content", "citations", "metadata", "parsed"}
)
"""Fields of a message that are left out of the prompt.

They repeat the text of other fields, are signed or encrypted by their provider, or describe the message. `CacheMarks` has
those of caches.
"""

THINKING_PARTS = frozenset({"thinking", "redacted_thinking"})
"""Types of content parts of the assistant in which gateways and Mistral's server have its thinking, readable and encrypted."""


def foreign_thinking(message: Mapping[str, Any]) -> str:
    """Return the thinking that other servers' fields and parts of a message have, each one in a form of its own.

    Args:
        message: The decoded JSON of a message whose own fields were checked.

    """
    content = message.get("content")
    parts = [part for part in content if part["type"] == "thinking"] if isinstance(content, list) else []
    return "".join(
        map(_text_of, parts or _mappings(message.get("reasoning_details") or message.get("thinking_blocks")))
    )


def _text_of(block: Mapping[str, Any]) -> str:
    """Return the text of a block of thinking: its own, or the joined texts of the blocks in it; empty without any."""
    for name in ("thinking", "text", "summary"):
        if isinstance(text := block.get(name), str):
            return text
    return "".join(map(_text_of, _mappings(block.get("thinking"))))


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
