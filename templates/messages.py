"""Messages of conversations, and the names of their fields that the package knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenweir.templates._native import GrowingMessages, Messages

__all__ = ["REASONING_FIELDS", "ROLES", "GrowingMessages", "Message", "Messages"]

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")  # which clients and templates use for one thing

Message = dict[str, Any]

Sequence.register(Messages)
