"""The input of a response: its items, checked, as messages for a chat template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from tokenweir.stream.serve.wire.compaction import unpack
from tokenweir.stream.serve.wire.contents import (
    Content,
    InputAudio,
    InputFile,
    audio_part,
    content_of,
    file_part,
    image_part,
    text_part,
)
from tokenweir.stream.serve.wire.conversation import ChatMessage, Conversation, FunctionName
from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.marks import CacheMarks
from tokenweir.stream.serve.wire.response_object import Item


class _InputText(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_text"):
    text: str


class _OutputText(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class _Refusal(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="refusal"):
    refusal: str

    @property
    def text(self) -> str:
        return self.refusal


class _InputImage(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_image"):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class _InputFile(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_file"):
    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    detail: str | None = None


class _InputAudio(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_audio"):
    input_audio: InputAudio


_Media = _InputImage | _InputFile | _InputAudio


class _ReasoningText(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="reasoning_text"):
    text: str


class _SummaryText(CacheMarks, frozen=True, tag_field="type", tag="summary_text"):
    text: str


class _Message(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="message"):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[_InputText | _OutputText | _Refusal | _InputImage | _InputFile | _InputAudio]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class _Reasoning(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="reasoning"):
    content: list[_ReasoningText] | None = None
    summary: list[_SummaryText] | None = None
    encrypted_content: None = None  # clients send back the null that stood in the response object
    id: str | None = None
    status: str | None = None


class _FunctionCall(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function_call"):
    call_id: str
    name: FunctionName
    arguments: str
    id: str | None = None
    status: str | None = None


class _FunctionCallOutput(
    CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function_call_output"
):
    call_id: str
    output: str | list[_InputText | _InputImage | _InputFile | _InputAudio]
    id: str | None = None
    status: str | None = None


class _Compaction(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="compaction"):
    encrypted_content: str
    id: str | None = None
    created_by: str | None = None


class ItemReference(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="item_reference"):
    """Input item that stands for an output item of a stored response, by its id."""

    id: str


InputItem = _Message | _Reasoning | _FunctionCall | _FunctionCallOutput | _Compaction | ItemReference
"""Items of clients, including those that a response has returned."""


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
        RequestError: The output of a call that was never made, a reference to an unknown item, a compaction of another
            server, or compactions of more than `max_items` messages together.

    """
    conversation = Conversation(after)
    unpacked = 0
    if isinstance(given, str):
        conversation.say("user", given)
        return conversation.end()
    for place, item in enumerate(given):
        match item:
            case _Message():
                conversation.say(item.role, _content(item.content, f"input[{place}].content"))
            case _Reasoning():
                conversation.think("".join(part.text for part in item.content or item.summary or ()))
            case _FunctionCall():
                conversation.call(item.call_id, item.name, item.arguments)
            case _FunctionCallOutput():
                output = _content(item.output, f"input[{place}].output")
                try:
                    conversation.answer(item.call_id, output)
                except LookupError as error:
                    raise RequestError(f"input[{place}]: {error.args[0]}", param=f"input[{place}].call_id") from error
            case ItemReference():
                if (found := find(item.id)) is None or not conversation.repeat(found):
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
    return conversation.end()


def _content(content: str | Sequence[_InputText | _OutputText | _Refusal | _Media], where: str) -> Content:
    if isinstance(content, str):
        return content
    return content_of(_part(part, f"{where}[{place}]") for place, part in enumerate(content))


def _part(part: _InputText | _OutputText | _Refusal | _Media, where: str) -> dict[str, Any]:
    match part:
        case _InputImage():
            return image_part(part.image_url, where)
        case _InputFile():
            return file_part(InputFile(part.file_data, part.filename), where)
        case _InputAudio():
            return audio_part(part.input_audio)
        case _:
            return text_part(part.text)
