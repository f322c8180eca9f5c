"""Estimated cost of making a prompt: the time of rendering, guarding and encoding it, in bytes of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tokenweir.stream.serve.wire.shared.contents import text_size
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage
from tokenweir.templates.messages import Messages

MESSAGE_COST = 256
"""Fixed cost of a message or a call: a step of the template's loop."""
VARIABLE_COST = 4
"""Cost of a byte of tools and variables as JSON, which templates traverse."""


def render_cost(
    messages: Sequence[ChatMessage], tools: Sequence[Any] | None, variables: Mapping[str, Any] | None
) -> int:
    """Estimate the cost of rendering and encoding a prompt, in bytes of text, for the fair queue.

    Args:
        messages: The conversation.
        tools: The tools that the template shows, or None.
        variables: Other variables of the template, or None.

    """
    cost = VARIABLE_COST * sum(len(msgspec.json.encode(given)) for given in (tools, variables) if given)
    if isinstance(messages, Messages):
        return cost + MESSAGE_COST * len(messages) + messages.text_size
    for message in messages:
        cost += MESSAGE_COST + text_size(message["content"]) + len(message.get("reasoning_content", ""))
        for call in message.get("tool_calls", ()):
            cost += MESSAGE_COST + len(call["function"]["arguments"])
    return cost
