"""Compaction of conversations: the question for the summary, and the item that replaces the messages. No I/O.

Messages of the system and the user stay word for word, without images. The assistant's messages, its calls and their results become a
summary by the model. The item is opaque to clients, as the protocol has it. It is neither secret nor signed, though its field is called
`encrypted_content`: it holds only messages and answers of its owner, and a forged item is as good as a message of that client.
"""

from __future__ import annotations

import binascii
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.events.deltas import Delta, Finish, TextDelta, Usage
from tokenweir.stream.serve.wire.responses.response_object import ResponseUsage
from tokenweir.stream.serve.wire.shared.checking import too_many_messages
from tokenweir.stream.serve.wire.shared.contents import paragraphs, text_of
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage

ASK = (
    "Write a summary of this conversation, from which you could go on without it: what you found out, decided and did, "
    "what is still to be done, and every name and number that matters for it. Write nothing else."
)

MOST_TOKENS = 2048
"""Of a summary and the thinking before it: one that is longer is cut, since small models may never come to an end."""


class PackedMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """A message inside a compaction item: its role and text."""

    role: Literal["system", "user", "assistant"]
    content: str


class CompactionItem(Struct, frozen=True, tag_field="type", tag="compaction"):
    """Output item that stands for a whole conversation; `encrypted_content` is the result of `pack`."""

    id: str
    encrypted_content: str


class CompactedResponse(Struct, frozen=True, kw_only=True):
    """The answer to `POST /v1/responses/compact`; its output is the input of the next response.

    `left_out` is an extension: the paths of the request's parts that the summary could not take into account.
    """

    id: str
    object: Literal["response.compaction"] = "response.compaction"
    created_at: int
    output: list[CompactionItem]
    usage: ResponseUsage
    left_out: list[str] | UnsetType = UNSET


def question(conversation: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the conversation with a request to the model to summarise it.

    The request is appended to the last message if that is the user's, because some templates want alternating turns.
    Otherwise it becomes a new user message.
    """
    *before, last = conversation or [{}]
    if last.get("role") == "user":
        return [*before, {"role": "user", "content": paragraphs(last["content"], ASK)}]
    return [*conversation, {"role": "user", "content": ASK}]


def compacted(
    conversation: Iterable[ChatMessage], deltas: Iterable[Delta], left_out: Sequence[str] = ()
) -> CompactedResponse:
    """Return the answer to `POST /v1/responses/compact`.

    Its one item holds each system message, then one user message, in which the user messages are joined by empty lines,
    and then the summary as an assistant message. All other messages and all media are left out. The item is encoded,
    but neither encrypted nor signed.

    Args:
        conversation: The messages to shorten.
        deltas: The model's answer to `question`. Its text is the summary; its thinking and calls are ignored.
        left_out: Paths of the request's parts that the prompt omits.

    Raises:
        RequestError: The model's answer has no text besides white space; its status is 500.

    """
    texts, usage = [], Usage()
    for delta in deltas:
        if isinstance(delta, TextDelta):
            texts.append(delta.text)
        elif isinstance(delta, Finish):
            usage = delta.usage
    summary = "".join(texts).strip()
    if not summary:
        raise RequestError("the model wrote no summary", code="server_error", status=500)
    by_role: dict[str, list[str]] = {}
    for message in conversation:
        by_role.setdefault(message["role"], []).append(text_of(message["content"]))
    messages = [PackedMessage("system", text) for text in by_role.get("system", ())]
    if "user" in by_role:
        messages.append(PackedMessage("user", "\n\n".join(by_role["user"])))
    item = CompactionItem(new_id("cmp"), pack([*messages, PackedMessage("assistant", summary)]))
    return CompactedResponse(
        id=new_id("resp"),
        created_at=int(time.time()),
        output=[item],
        usage=ResponseUsage.of(usage),
        left_out=list(left_out) or UNSET,
    )


def pack(messages: Sequence[PackedMessage]) -> str:
    """Encode messages as the `encrypted_content` of a compaction item: JSON in base64, without encryption."""
    return b64encode(msgspec.json.encode(messages)).decode()


def unpack(content: str, *, before: int = 0, max_items: int = 2048) -> list[PackedMessage]:
    """Decode the `encrypted_content` of a compaction item to its messages.

    Args:
        content: The result of `pack`.
        before: Number of messages that were already unpacked from other items of the request.
        max_items: Most messages, including the `before`.

    Raises:
        RequestError: There are more than `max_items`. They are counted before any is decoded.
        ValueError: The content is not a result of `pack`.

    """
    try:
        data = b64decode(content, validate=True)
        total = before + len(msgspec.json.decode(data, type=list[msgspec.Raw]))
        messages = msgspec.json.decode(data, type=list[PackedMessage]) if total <= max_items else []
    except (binascii.Error, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError("this server has not made this compaction") from error
    if total > max_items:
        raise too_many_messages(total, max_items)
    return messages
