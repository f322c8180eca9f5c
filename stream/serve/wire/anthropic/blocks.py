"""Content blocks of Anthropic's messages that this server takes, and the refusal of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from tokenweir.stream.serve.wire.contents import (
    Content,
    InputFile,
    content_of,
    file_part,
    image_part,
    parts_of,
    text_part,
    unsupported,
)
from tokenweir.stream.serve.wire.conversation import FunctionName
from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.marks import CacheMarks


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    """Content block of text."""

    text: str


class ThinkingBlock(Struct, frozen=True, tag_field="type", tag="thinking"):
    """Content block of the assistant's thinking. Its signature is ignored."""

    thinking: str


class RedactedThinkingBlock(Struct, frozen=True, tag_field="type", tag="redacted_thinking"):
    """Content block of another server's encrypted thinking; it is left out of the prompt."""


class ToolUseBlock(Struct, frozen=True, tag_field="type", tag="tool_use"):
    """Content block of a tool call of the assistant; `input` has the arguments."""

    id: str
    name: FunctionName
    input: dict[str, Any]


class Source(Struct, frozen=True):
    """Source of an image or a document.

    `data` is base64 or text, as `type` says; `url` is its address.
    """

    type: Literal["base64", "text", "url", "file", "content"]
    media_type: str = ""
    data: str = ""
    url: str = ""


class ImageBlock(Struct, frozen=True, tag_field="type", tag="image"):
    """Content block of an image."""

    source: Source

    def part(self, where: str) -> dict[str, Any]:
        """Return the image as content part for a chat template.

        `where` is the block's path in the request, for errors. Raise `RequestError` if the source is neither base64 nor
        a URL.
        """
        if self.source.type == "url":
            return image_part(self.source.url, where)
        if self.source.type != "base64":
            raise unsupported(f"{where}.source is of type {self.source.type!r}: images come in base64 here", where)
        return image_part(f"data:{self.source.media_type};base64,{self.source.data}", where)


class DocumentBlock(Struct, frozen=True, tag_field="type", tag="document"):
    """Content block of a text document or another file."""

    source: Source
    title: str | None = None

    def part(self, where: str) -> dict[str, Any]:
        """Return the document as content part for a chat template: a text that begins with its title, or a medium.

        `where` is the block's path in the request, for errors. Raise `RequestError` if the source is neither text nor
        base64, or the file is not of a supported type.
        """
        source = self.source
        if source.type == "text":
            return text_part(f"{self.title}:\n{source.data}\n" if self.title else source.data)
        if source.type != "base64":
            raise unsupported(f"{where}.source is of type {source.type!r}: documents come with their bytes here", where)
        return file_part(InputFile(f"data:{source.media_type};base64,{source.data}", self.title), where)


class ToolReferenceBlock(Struct, frozen=True, tag_field="type", tag="tool_reference"):
    """Content block that names a tool that a tool search has found; the model sees only the name."""

    tool_name: str


class ToolResultBlock(Struct, frozen=True, tag_field="type", tag="tool_result"):
    """Content block of a tool call's result."""

    tool_use_id: str
    content: str | list[TextBlock | ToolReferenceBlock | ImageBlock | DocumentBlock] | None = None
    is_error: bool | None = None

    def shown(self, where: str) -> Content:
        """Return the result as content for the model; that of a failed call begins with `Error: `.

        `where` is the block's path in the request, for errors. Raises as `block_part`.
        """
        if isinstance(self.content, str):
            content: Content = self.content
        else:
            given = enumerate(self.content or ())
            content = content_of(block_part(block, f"{where}.content[{place}]") for place, block in given)
        if not self.is_error:
            return content
        return content_of([text_part("Error: "), *parts_of(content)]) if content else "Error"


def block_part(block: TextBlock | ToolReferenceBlock | ImageBlock | DocumentBlock, where: str) -> dict[str, Any]:
    """Return a block as content part for a chat template.

    `where` is the block's path in the request, for errors. Raise `RequestError` for an unsupported image or document.
    """
    match block:
        case TextBlock():
            return text_part(block.text)
        case ToolReferenceBlock():
            return text_part(block.tool_name)
        case _:
            return block.part(where)


Block = TextBlock | ImageBlock | DocumentBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock


class Message(CacheMarks, frozen=True, forbid_unknown_fields=True):
    """A message of a request.

    Attributes:
        role: The author.
        content: A text, or content blocks.
        clear_at: `next_user_message` hides this message from the model once a user message follows it.

    """

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]
    clear_at: Literal["next_user_message", "never"] | None = None

    @property
    def blocks(self) -> Sequence[Block]:
        """The content as blocks; a text is one text block."""
        return [TextBlock(self.content)] if isinstance(self.content, str) else self.content


_MESSAGE_BLOCKS = {
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
    "system": ("text",),
}
_RESULT_BLOCKS = ("text", "image", "document", "tool_reference")


def check_blocks(body: Mapping[str, Any]) -> None:
    """Raise `RequestError` if a content block in the body has a type that is unsupported at its place."""
    for where, given, taken in _block_lists(body):
        for place, block in enumerate(given):
            kind = block.get("type") if isinstance(block, dict) else None
            if isinstance(kind, str) and kind not in taken:
                where = f"{where}[{place}]"
                raise RequestError(
                    f"{where} is of type {kind[:80]!r}: this server takes here {' or '.join(taken)}",
                    code="unsupported_content",
                    param=where,
                )


def _block_lists(body: Mapping[str, Any]) -> Iterator[tuple[str, list[Any], Sequence[str]]]:
    """Yield for each list of content blocks in a body: its path, the list, and the block types supported there."""
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
