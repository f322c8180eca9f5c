"""Messages of Chat Completions, checked, as messages for a chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tokenweir.stream.serve.wire.checking import located
from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.messages import ChatMessage, Conversation, FunctionName


class TextPart(Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of a message's content."""

    type: Literal["text", "input_text", "refusal"]
    text: str = ""
    refusal: str = ""


class CalledFunction(Struct, frozen=True):
    """Function of a call; `arguments` is JSON text."""

    name: FunctionName
    arguments: str = "{}"


class ToolCall(Struct, frozen=True):
    """A call that the assistant made."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int | None = None


class Message(Struct, frozen=True, forbid_unknown_fields=True):
    """A message; what an assistant's has besides content is what this and other servers put out."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] = []
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    annotations: list[Any] = []
    audio: None = None
    function_call: None = None


def chat_messages(messages: Sequence[Any], field: str = "messages") -> list[ChatMessage]:
    """Return the messages for a chat template.

    Args:
        messages: As they came.
        field: Their name in the request, for errors.

    Raises:
        RequestError: Names the message and the field at fault.

    """
    given = [
        {key: value for key, value in message.items() if value is not None} if isinstance(message, dict) else message
        for message in messages
    ]
    kind = dict[str, list[Message]]
    try:
        checked = msgspec.convert({field: given}, kind)[field]
    except msgspec.ValidationError as error:
        named = msgspec.ValidationError(str(error).replace("$[...]", f"$.{field}"))  # as msgspec writes a mapping's key
        raise located(named, {field: given}, kind) from error
    conversation = Conversation()
    for place, message in enumerate(checked):
        text = _text(message.content)
        if message.role == "tool":
            try:
                conversation.answer(message.tool_call_id or "", text)
            except LookupError as error:
                where = f"{field}[{place}]"
                raise RequestError(
                    f"{where}: no tool call before it has the id {(message.tool_call_id or '')[:80]!r}",
                    param=f"{where}.tool_call_id",
                ) from error
            continue
        if message.role == "assistant":
            conversation.think(message.reasoning_content or message.reasoning or "")
        if text or message.role != "assistant" or not message.tool_calls:
            conversation.say(message.role, text)
        for call in message.tool_calls:
            conversation.call(call.id, call.function.name, call.function.arguments)
    return conversation.end()


def _text(content: str | list[TextPart] | None) -> str:
    if isinstance(content, list):
        return "".join(part.refusal if part.type == "refusal" else part.text for part in content)
    return content or ""
