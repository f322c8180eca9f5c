"""Content blocks of Anthropic's messages that this server takes, and the refusal of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.messages import FunctionName


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    """A text."""

    text: str


class ThinkingBlock(Struct, frozen=True, tag_field="type", tag="thinking"):
    """Thinking of the assistant. Its signature is not read: a history is the client's word, whoever signed it."""

    thinking: str


class RedactedThinkingBlock(Struct, frozen=True, tag_field="type", tag="redacted_thinking"):
    """Encrypted thinking of another server, which this one cannot read."""


class ToolUseBlock(Struct, frozen=True, tag_field="type", tag="tool_use"):
    """A call that the assistant made."""

    id: str
    name: FunctionName
    input: dict[str, Any]


class ToolReferenceBlock(Struct, frozen=True, tag_field="type", tag="tool_reference"):
    """The name of a tool that a search for tools has found; the model knows all tools already."""

    tool_name: str


class ToolResultBlock(Struct, frozen=True, tag_field="type", tag="tool_result"):
    """The result of a call."""

    tool_use_id: str
    content: str | list[TextBlock | ToolReferenceBlock] | None = None
    is_error: bool | None = None

    def text(self) -> str:
        """Return the text for the model, which says that it is an error if it is one."""
        if isinstance(self.content, str):
            text = self.content
        else:
            parts = self.content or ()
            text = "".join(part.text if isinstance(part, TextBlock) else part.tool_name for part in parts)
        if not self.is_error:
            return text
        return f"Error: {text}" if text else "Error"


Block = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """A message.

    Attributes:
        role: Its writer.
        content: A text, or blocks.
        clear_at: `next_user_message` hides a system message from the model once the user has said something after it.

    """

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]
    clear_at: Literal["next_user_message", "never"] | None = None

    @property
    def blocks(self) -> Sequence[Block]:
        """The content as blocks."""
        return [TextBlock(self.content)] if isinstance(self.content, str) else self.content


_MESSAGE_BLOCKS = {
    "user": ("text", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
    "system": ("text",),
}
_RESULT_BLOCKS = ("text", "tool_reference")


def check_blocks(body: Mapping[str, Any]) -> None:
    """Refuse blocks that no text model can be shown, such as images and documents.

    Raises:
        RequestError: Names the block and its type.

    """
    for where, given, taken in _block_lists(body):
        for place, block in enumerate(given):
            kind = block.get("type") if isinstance(block, dict) else None
            if isinstance(kind, str) and kind not in taken:
                where = f"{where}[{place}]"
                raise RequestError(
                    f"{where} is of type {kind[:80]!r}: this server takes text only, here as {' or '.join(taken)}",
                    code="unsupported_content",
                    param=where,
                )


def _block_lists(body: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], Sequence[str]]]:
    """Yield the lists of blocks in a body, with their paths and the types that may stand there."""
    if isinstance(system := body.get("system"), list):
        yield "system", system, ("text",)
    messages = body.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, dict) or not isinstance(content := message.get("content"), list):
            continue
        role = message.get("role")
        where = f"messages[{number}].content"
        yield where, content, _MESSAGE_BLOCKS.get(role if isinstance(role, str) else "", _MESSAGE_BLOCKS["user"])
        for place, block in enumerate(content):
            if isinstance(block, dict) and isinstance(inner := block.get("content"), list):
                yield f"{where}[{place}].content", inner, _RESULT_BLOCKS
