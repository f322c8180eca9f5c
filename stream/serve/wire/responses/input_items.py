"""The input of a response: its items, checked, as messages for a chat template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from tokenweir.stream.serve.wire.responses.call_items import CallItem, ToolItem, add_item, is_left_out
from tokenweir.stream.serve.wire.responses.compaction import unpack
from tokenweir.stream.serve.wire.responses.input_parts import InputPart, input_content
from tokenweir.stream.serve.wire.responses.response_object import (
    CustomToolCallItem,
    FunctionCallItem,
    Item,
    MessageItem,
    ReasoningItem,
    text_of,
)
from tokenweir.stream.serve.wire.responses.response_tools import ClientTool, ServerTool
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage, MessageBuilder
from tokenweir.stream.serve.wire.shared.tool_names import custom_arguments, joined_name


class _ReasoningText(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="reasoning_text"):
    text: str


class _SummaryText(CacheMarks, frozen=True, tag_field="type", tag="summary_text"):
    text: str


class _Message(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="message"):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[InputPart] | None = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class _Reasoning(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="reasoning"):
    content: list[_ReasoningText] | None = None
    summary: list[_SummaryText] | None = None
    encrypted_content: str | None = None
    id: str | None = None
    status: str | None = None


class _Compaction(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="compaction"):
    encrypted_content: str
    id: str | None = None
    created_by: str | None = None


class ItemReference(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="item_reference"):
    """Input item that stands for an output item of a stored response, by its id."""

    id: str


InputItem = _Message | _Reasoning | _Compaction | ItemReference | CallItem
"""Items of clients, including those that a response has returned."""


def left_out_of(given: str | Sequence[InputItem] | None) -> list[str]:
    """Return the paths of what the prompt omits of a request's input: items, tools in them, and encrypted thinking."""
    paths = []
    for place, item in enumerate(() if given is None or isinstance(given, str) else given):
        if isinstance(item, _Reasoning):
            if item.encrypted_content is not None:
                paths.append(f"input[{place}].encrypted_content")
        elif isinstance(item, ToolItem):
            tools = enumerate(item.tools)
            paths += [f"input[{place}].tools[{number}]" for number, tool in tools if isinstance(tool, ServerTool)]
        elif isinstance(item, CallItem) and is_left_out(item):
            paths.append(f"input[{place}]")
    return paths


def tools_of(given: str | Sequence[InputItem] | None) -> list[ClientTool | ServerTool]:
    """Return the tools that items of a request's input bring."""
    items = () if given is None or isinstance(given, str) else given
    return [tool for item in items if isinstance(item, ToolItem) for tool in item.tools]


def conversation_of(
    given: str | Sequence[InputItem],
    after: Iterable[ChatMessage] = (),
    *,
    max_items: int = 2048,
    find: Callable[[str], Item | None] = lambda _: None,
) -> list[ChatMessage]:
    """Return a conversation with a request's input, as messages for a chat template.

    Args:
        given: The input; a string is a message of the user.
        after: The messages before the input.
        max_items: Most messages that the input's compaction items may contain together.
        find: Returns the output item of a stored response by its id, or None for an unknown id.

    Raises:
        RequestError: A reference to an unknown item, a compaction of another server, compactions of more than `max_items`
            messages together, or, behind kept messages, the output of a call that was never made.

    """
    conversation = MessageBuilder(after)
    unpacked = 0
    if isinstance(given, str):
        conversation.say("user", given)
        return conversation.end()
    for place, item in enumerate(given):
        match item:
            case _Message():
                conversation.say(item.role, input_content(item.content, f"input[{place}].content"))
            case _Reasoning():
                conversation.think("".join(part.text for part in item.content or item.summary or ()))
            case ItemReference():
                if (found := find(item.id)) is None or not repeat_item(conversation, found):
                    raise RequestError(
                        f"input[{place}]: no item {item.id[:80]!r} of a stored response is here; send the item itself",
                        code="item_not_found",
                        param=f"input[{place}].id",
                        status=404,
                    )
            case _Compaction():
                try:
                    messages = unpack(item.encrypted_content, before=unpacked, max_items=max_items)
                except RequestError:
                    raise
                except ValueError as error:
                    where = f"input[{place}].encrypted_content"
                    raise RequestError(f"{where}: {error}", param=where) from error
                unpacked += len(messages)
                for message in messages:
                    conversation.say(message.role, message.content)
            case _:
                try:
                    add_item(conversation, item, f"input[{place}]")
                except LookupError as error:
                    raise RequestError(f"input[{place}]: {error.args[0]}", param=f"input[{place}].call_id") from error
    return conversation.end()


def repeat_item(builder: MessageBuilder, item: Item) -> bool:
    """Add an output item of an earlier answer; return False, and add nothing, for an incomplete tool call."""
    match item:
        case MessageItem():
            builder.say("assistant", text_of(item))
        case ReasoningItem():
            builder.think(text_of(item))
        case FunctionCallItem(status="completed"):
            builder.call(item.call_id, joined_name(item.name, item.namespace), item.arguments)
        case CustomToolCallItem(status="completed"):
            builder.call(item.call_id, joined_name(item.name, item.namespace), custom_arguments(item.input))
        case FunctionCallItem() | CustomToolCallItem():
            return False
    return True
