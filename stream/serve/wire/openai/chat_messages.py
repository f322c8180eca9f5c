"""Messages of Chat Completions, checked, as messages for a chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from tokenweir.stream.serve.wire.openai.leftovers import FOREIGN_FIELDS, THINKING_PARTS, foreign_thinking
from tokenweir.stream.serve.wire.shared.checking import convert_validation_error
from tokenweir.stream.serve.wire.shared.contents import (
    Content,
    ImageAddress,
    InputAudio,
    InputFile,
    audio_part,
    content_of,
    file_part,
    text_part,
    unsupported,
)
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage, FunctionName, MessageBuilder
from tokenweir.stream.serve.wire.shared.tool_names import custom_arguments

CONTINUED_MARKS = ("prefix", "partial")
"""Fields by which the last message, one of the assistant, asks to be continued: DeepSeek's and Mistral's, and Moonshot's."""


class ContentPart(CacheMarks, frozen=True, forbid_unknown_fields=True):
    """A part of a message's content; the value stands in the field that `type` names.

    `signature`, `closed` and `data` belong to thinking, and are not read.
    """

    type: Literal[
        "text",
        "input_text",
        "output_text",
        "refusal",
        "image_url",
        "input_audio",
        "video_url",
        "audio_url",
        "file",
        "thinking",
        "redacted_thinking",
    ]
    text: str = ""
    refusal: str = ""
    thinking: Any = None
    signature: Any = None
    closed: Any = None
    data: Any = None
    image_url: ImageAddress | None = None
    input_audio: InputAudio | None = None
    video_url: ImageAddress | None = None
    audio_url: ImageAddress | None = None
    file: InputFile | None = None

    def part(self, where: str) -> dict[str, Any]:
        """Return the part in the form that chat templates take.

        Args:
            where: Path of the part in the request, for errors.

        Raises:
            RequestError: The field that `type` names is missing, or the file is not of a supported type.

        """
        if self.type in ("text", "input_text", "output_text", "refusal"):
            return text_part(self.refusal if self.type == "refusal" else self.text)
        given = getattr(self, self.type)
        if given is None:
            param = f"{where}.{self.type}"
            raise RequestError(f"{param} is missing", code="missing_required_parameter", param=param)
        match given:
            case InputFile():
                return file_part(given, f"{where}.file")
            case InputAudio():
                return audio_part(given)
            case _:
                return {"type": self.type, self.type: {"url": given.url}}


class CalledFunction(Struct, frozen=True):
    """The function of a tool call; `arguments` is JSON text, or what a client has in its place."""

    name: FunctionName
    arguments: Any = "{}"


class CalledCustom(Struct, frozen=True):
    """The custom tool of a tool call; `input` is a text."""

    name: FunctionName
    input: str


class ToolCall(Struct, frozen=True):
    """A tool call in a message of the assistant: of a function, or of another server's custom tool."""

    id: str
    type: Literal["function", "custom"] = "function"
    function: CalledFunction | None = None
    custom: CalledCustom | None = None
    index: int | None = None

    def __post_init__(self) -> None:
        if (self.function if self.type == "function" else self.custom) is None:
            raise ValueError(f"Object missing required field `{self.type}`")

    @property
    def called(self) -> tuple[str, object]:
        """The name of the function and its arguments, for `MessageBuilder.call`; a custom tool has one argument."""
        if self.type == "custom" and self.custom is not None:
            return self.custom.name, custom_arguments(self.custom.input)
        assert self.function is not None
        return self.function.name, self.function.arguments


class Message(CacheMarks, frozen=True, forbid_unknown_fields=True):
    """A message of a request.

    A message of the assistant may have the fields besides content that this and other servers write in their answers. If it
    is the last one, `prefix` or `partial` asks that the answer continue it; in an earlier one they have no effect.
    """

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    thinking: str | None = None
    refusal: str | None = None
    annotations: list[Any] = field(default_factory=list)
    audio: None = None
    function_call: None = None
    prefix: bool = False
    partial: bool = False


def chat_messages(messages: Sequence[Any]) -> list[ChatMessage]:
    """Check a request's messages and convert them for a chat template.

    Raises:
        RequestError: A message has a wrong field or unsupported content. The error names the message and the field.

    """
    given = [
        {key: value for key, value in message.items() if value is not None and key not in FOREIGN_FIELDS}
        if isinstance(message, dict)
        else message
        for message in messages
    ]
    kind = dict[str, list[Message]]
    try:
        checked = msgspec.convert({"messages": given}, kind)["messages"]
    except msgspec.ValidationError as error:
        named = msgspec.ValidationError(str(error).replace("$[...]", "$.messages"))  # as msgspec writes a mapping's key
        raise convert_validation_error(named, {"messages": given}, kind) from error
    conversation = MessageBuilder()
    for place, message in enumerate(checked):
        if message.role != "assistant" and (
            mark := next((name for name in CONTINUED_MARKS if getattr(message, name)), "")
        ):
            where = f"messages[{place}].{mark}"
            raise RequestError(f"{where}: only a message of the assistant can be continued", param=where)
        content = _content(message, f"messages[{place}].content")
        if message.role == "tool":
            conversation.answer(message.tool_call_id, content, message.name)
            continue
        if message.role == "assistant":
            content = content or message.refusal or ""
            thinking = message.reasoning_content or message.reasoning or message.thinking
            conversation.think(thinking or foreign_thinking(messages[place]))
        if content or message.role != "assistant" or not message.tool_calls:
            conversation.say(message.role, content)
        for call in message.tool_calls:
            conversation.call(call.id, *call.called)
    return conversation.end()


def _content(message: Message, where: str) -> Content:
    if not isinstance(message.content, list):
        return message.content or ""
    parts = []
    for place, part in enumerate(message.content):
        if part.type not in THINKING_PARTS:
            parts.append(part.part(f"{where}[{place}]"))
        elif message.role != "assistant":
            raise unsupported(
                f"{where}[{place}] is of type {part.type!r}: only the assistant thinks", f"{where}[{place}]"
            )
    return content_of(parts)
