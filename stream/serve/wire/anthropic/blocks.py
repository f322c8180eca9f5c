"""Content blocks of Anthropic's messages that this server takes, and the refusal of all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import Struct

from tokenweir.stream.serve.wire.shared.contents import (
    Content,
    InputFile,
    content_of,
    file_part,
    image_part,
    parts_of,
    text_part,
    unsupported,
)
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.message_builder import FunctionName


class TextBlock(Struct, frozen=True, tag_field="type", tag="text"):
    """Content block of text."""

    text: str


class ThinkingBlock(Struct, frozen=True, tag_field="type", tag="thinking"):
    """Content block of the assistant's thinking. Its signature is ignored."""

    thinking: str


class RedactedThinkingBlock(Struct, frozen=True, tag_field="type", tag="redacted_thinking"):
    """Content block of another server's encrypted thinking; it is left out of the prompt."""


class ToolUseBlock(Struct, frozen=True, tag_field="type", tag="tool_use"):
    """Content block of a tool call of the assistant; `input` has the arguments, or what a client has in their place."""

    id: str
    name: FunctionName
    input: Any = None


class MediaSource(Struct, frozen=True):
    """Source of an image or a document.

    `data` is base64 or text, as `type` says; `url` is its address; `content` is a text, or texts and images.
    """

    type: Literal["base64", "text", "url", "file", "content"]
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: str | list[TextBlock | ImageBlock] = ""


class ImageBlock(Struct, frozen=True, tag_field="type", tag="image"):
    """Content block of an image."""

    source: MediaSource

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

    source: MediaSource
    title: str | None = None
    context: str | None = None

    def parts(self, where: str) -> list[dict[str, Any]]:
        """Return the document as content parts for a chat template: texts that begin with its title, or media.

        `where` is the block's path in the request, for errors. Raise `RequestError` if the source is an address or an
        uploaded file, or the file is not of a supported type.
        """
        source = self.source
        context = [text_part(f"{self.context}\n")] if self.context else []
        if source.type in ("url", "file"):
            raise unsupported(f"{where}.source is of type {source.type!r}: documents come with their bytes here", where)
        if source.type == "base64":
            file = InputFile(f"data:{source.media_type};base64,{source.data}", self.title)
            return [*context, file_part(file, where)]
        shown = [text_part(source.data)] if source.type == "text" else _shown(source.content, f"{where}.source.content")
        return [*context, text_part(f"{self.title}:\n"), *shown, text_part("\n")] if self.title else [*context, *shown]


class SearchResultBlock(Struct, frozen=True, tag_field="type", tag="search_result"):
    """Content block of a result of the client's own search: texts, with their source and a title."""

    source: str
    title: str
    content: list[TextBlock]

    def parts(self) -> list[dict[str, Any]]:
        """Return the result as content parts for a chat template: a text that begins with title and source."""
        texts = [text_part(block.text) for block in self.content]
        return [text_part(f"{self.title} ({self.source}):\n"), *texts, text_part("\n")]


class ToolReferenceBlock(Struct, frozen=True, tag_field="type", tag="tool_reference"):
    """Content block that names a tool that a tool search has found; the model sees only the name."""

    tool_name: str


class ToolResultBlock(Struct, frozen=True, tag_field="type", tag="tool_result"):
    """Content block of a tool call's result."""

    tool_use_id: str
    content: str | list[ShownBlock] | None = None
    is_error: bool | None = None

    def shown(self, where: str) -> Content:
        """Return the result as content for the model; that of a failed call begins with `Error: `.

        `where` is the block's path in the request, for errors. Raises `RequestError` as `block_parts`.
        """
        content = content_of(_shown(self.content or "", f"{where}.content"))
        if not self.is_error:
            return content
        return content_of([text_part("Error: "), *parts_of(content)]) if content else "Error"


ShownBlock = TextBlock | ToolReferenceBlock | ImageBlock | DocumentBlock | SearchResultBlock
"""A block that the model is shown as it is."""


def block_parts(block: ShownBlock, where: str) -> list[dict[str, Any]]:
    """Return a block as content parts for a chat template.

    `where` is the block's path in the request, for errors. Raise `RequestError` for an unsupported image or document.
    """
    match block:
        case TextBlock():
            return [text_part(block.text)]
        case ToolReferenceBlock():
            return [text_part(block.tool_name)]
        case ImageBlock():
            return [block.part(where)]
        case DocumentBlock():
            return block.parts(where)
        case SearchResultBlock():
            return block.parts()


def _shown(content: str | Sequence[ShownBlock], where: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [text_part(content)]
    return [part for place, block in enumerate(content) for part in block_parts(block, f"{where}[{place}]")]


class ServerToolUseBlock(Struct, frozen=True, tag_field="type", tag="server_tool_use"):
    """Content block of a call that the provider has made of a tool of its own."""

    id: str
    name: FunctionName
    input: dict[str, Any]


class McpToolUseBlock(Struct, frozen=True, tag_field="type", tag="mcp_tool_use"):
    """Content block of a call that the provider has made on an MCP server."""

    id: str
    name: FunctionName
    server_name: FunctionName
    input: dict[str, Any]


class McpToolResultBlock(ToolResultBlock, frozen=True, tag="mcp_tool_result"):
    """Content block of the result of a call on an MCP server."""


class _ServerToolResult(Struct, frozen=True, tag_field="type"):
    tool_use_id: str
    content: Any = None


class CodeResultBlock(_ServerToolResult, frozen=True, tag="code_execution_tool_result"):
    """Content block of the output of a program that the provider has run."""


class BashResultBlock(_ServerToolResult, frozen=True, tag="bash_code_execution_tool_result"):
    """Content block of the output of a command that the provider has run."""


class EditorResultBlock(_ServerToolResult, frozen=True, tag="text_editor_code_execution_tool_result"):
    """Content block of the result of an edit that the provider has made."""


class FetchResultBlock(_ServerToolResult, frozen=True, tag="web_fetch_tool_result"):
    """Content block of a page that the provider has fetched."""


class SearchToolResultBlock(_ServerToolResult, frozen=True, tag="web_search_tool_result"):
    """Content block of the results, which are encrypted, of a search that the provider has made."""


class ToolSearchResultBlock(_ServerToolResult, frozen=True, tag="tool_search_tool_result"):
    """Content block of the names of tools that the provider has found."""


class AdvisorResultBlock(_ServerToolResult, frozen=True, tag="advisor_tool_result"):
    """Content block of the advice of another model of the provider."""


class McpToolListingBlock(Struct, frozen=True, tag_field="type", tag="mcp_tool_listing"):
    """Content block of the tools that the provider has found on an MCP server."""


class FallbackBlock(Struct, frozen=True, tag_field="type", tag="fallback"):
    """Mark of a change of the model; Anthropic's server shows it to no model."""


ServerCall = ServerToolUseBlock | McpToolUseBlock
ServerResult = (
    CodeResultBlock
    | BashResultBlock
    | EditorResultBlock
    | FetchResultBlock
    | SearchToolResultBlock
    | ToolSearchResultBlock
    | AdvisorResultBlock
    | McpToolResultBlock
)
SERVER_BLOCKS = tuple(
    str(kind.__struct_config__.tag)
    for kind in (*get_args(ServerCall), *get_args(ServerResult), McpToolListingBlock, FallbackBlock)
)
"""Types of the blocks that a provider's own tools and its change of models leave in a message of the assistant."""

Block = (
    ShownBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ServerCall
    | ServerResult
    | McpToolListingBlock
    | FallbackBlock
)


class Message(CacheMarks, frozen=True, forbid_unknown_fields=True):
    """A message of a request.

    Attributes:
        role: The author.
        content: A text, or content blocks; None is no block.
        clear_at: `next_user_message` hides this message from the model once a user message follows it.

    """

    role: Literal["user", "assistant", "system"]
    content: str | list[Block] | None = None
    clear_at: Literal["next_user_message", "never"] | None = None

    @property
    def blocks(self) -> Sequence[Block]:
        """The content as blocks; a text is one text block."""
        return [TextBlock(self.content)] if isinstance(self.content, str) else self.content or ()


_MESSAGE_BLOCKS = {
    "user": ("text", "image", "document", "search_result", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use", *SERVER_BLOCKS),
    "system": ("text",),
}
_RESULT_BLOCKS = ("text", "image", "document", "search_result", "tool_reference")


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
            if not isinstance(block, dict) or block.get("type") not in ("tool_result", "mcp_tool_result"):
                continue
            if isinstance(inner := block.get("content"), list):
                yield f"{where}[{place}].content", inner, _RESULT_BLOCKS
