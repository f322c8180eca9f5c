"""Anthropic's messages as they go out: deltas as events, or as one message. No I/O.

Each stretch of thinking, of text, and each call is a content block. Thinking ends with a signature: an HMAC by the
server's secret, equal for equal texts. A call that was cut off is part of a stream, whose `stop_reason` tells, but not
of a message, whose `input` is an object.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.events.call_ids import new_call_id
from tokenweir.stream.events.deltas import Delta, Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta, Usage
from tokenweir.stream.serve.wire.shared.answer_format import AnsweredPrompt, AnswerFormat
from tokenweir.stream.serve.wire.shared.errors import RequestError, messages_error
from tokenweir.stream.serve.wire.shared.ids import new_id
from tokenweir.stream.serve.wire.shared.sse import named_sse

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"]


class TokenDetails(Struct, frozen=True):
    """Number of tokens of thinking."""

    thinking_tokens: int


class MessageUsage(Struct, frozen=True):
    """Token counts of a message.

    `input_tokens` excludes the tokens that the engine had in its cache. `cache_read_input_tokens` counts these, with
    None for 0. `cache_creation_input_tokens` is None, because this server does not count it.
    """

    input_tokens: int
    output_tokens: int
    output_tokens_details: TokenDetails
    cache_creation_input_tokens: None = None
    cache_read_input_tokens: int | None = None

    @classmethod
    def of(cls, usage: Usage) -> MessageUsage:
        """Convert an answer's token counts to the form of the Messages API."""
        cached = usage.cached_tokens
        return cls(
            usage.prompt_tokens - cached,
            usage.completion_tokens,
            TokenDetails(usage.reasoning_tokens),
            cache_read_input_tokens=cached or None,
        )


class AppliedEdits(Struct, frozen=True):
    """The edits of the context that the server has applied: always an empty list, because it applies no edits."""

    applied_edits: list[str] = []


class MessageObject(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """The message object of an answer, whole or at the start of a stream.

    `left_out` is an extension: the paths of the request's parts that the prompt omits.
    """

    id: str
    model: str
    content: list[dict[str, Any]]
    usage: MessageUsage
    role: Literal["assistant"] = "assistant"
    stop_reason: StopReason | None = None
    stop_sequence: str | None = None
    left_out: list[str] | UnsetType = UNSET
    context_management: AppliedEdits | UnsetType = UNSET


class MessageStart(Struct, frozen=True, tag_field="type", tag="message_start"):
    """The event `message_start`, which opens a message."""

    message: MessageObject


class BlockStart(Struct, frozen=True, tag_field="type", tag="content_block_start"):
    """The event `content_block_start`, which opens a content block."""

    index: int
    content_block: dict[str, Any]


class BlockDelta(Struct, frozen=True, tag_field="type", tag="content_block_delta"):
    """The event `content_block_delta`: an increment of a content block."""

    index: int
    delta: dict[str, str]


class BlockStop(Struct, frozen=True, tag_field="type", tag="content_block_stop"):
    """The event `content_block_stop`, which closes a content block."""

    index: int


class StopDetails(Struct, frozen=True):
    """The reason why a message ended, and the stop string that ended it, or None."""

    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Struct, frozen=True, tag_field="type", tag="message_delta"):
    """The event `message_delta`: the reason why the message ended, and its token counts."""

    delta: StopDetails
    usage: MessageUsage
    context_management: AppliedEdits | UnsetType = UNSET


class MessageStop(Struct, frozen=True, tag_field="type", tag="message_stop"):
    """The event `message_stop`, which is the last one."""


MessageEvent = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop


class MessageAnswer(AnswerFormat):
    """Converter of an answer's deltas to Anthropic's Messages API, streamed or whole.

    Args:
        model: The model's name, repeated in the answer.
        secret: Key of the HMAC that signs thinking.
        max_tokens: The limit on the answer's tokens. An answer that its length ended with fewer tokens is reported as
            one that filled the context.
        omit_thinking: Send the signatures of thinking without its text.
        left_out: Paths of the request's parts that the prompt omits, repeated in the answer.
        edits: Whether the request has `context_management`; the answer then reports that no edit was applied.

    """

    END = b""
    HEARTBEAT = b'event: ping\ndata: {"type":"ping"}\n\n'
    """An event: clients with a timeout of their own do not count comments."""

    def __init__(
        self,
        model: str,
        *,
        secret: bytes,
        max_tokens: int,
        omit_thinking: bool = False,
        left_out: Sequence[str] = (),
        edits: bool = False,
    ) -> None:
        self.id = new_id("msg")
        self._model = model
        self._secret = secret
        self._max_tokens = max_tokens
        self._omit_thinking = omit_thinking
        self._left_out = list(left_out) or UNSET
        self._edits = AppliedEdits() if edits else UNSET
        self._index = -1  # of the open block, or of the last one
        self._open: tuple[type[Delta], int] | None = None  # its kind, and the number of its call
        self._thinking = hmac.new(secret, digestmod=sha256)
        self._message = _WholeMessage()

    def start(self, prompt: AnsweredPrompt) -> list[bytes]:
        """Return the event that opens the message."""
        usage = MessageUsage(len(prompt.ids), 0, TokenDetails(0))
        return [named_sse(MessageStart(self._message_object([], usage)))]

    def chunks(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> list[bytes]:
        return [named_sse(event) for delta in deltas for event in self._step(delta)]

    def add(self, deltas: Iterable[Delta], prompt: AnsweredPrompt) -> None:
        for delta in deltas:
            for event in self._step(delta):
                self._message.add(event)
            if isinstance(delta, ToolCallDelta) and delta.complete:
                self._message.complete()

    def error(self, error: RequestError) -> bytes:
        return named_sse(messages_error(error))

    def whole(self) -> bytes:
        end = self._message.end
        assert end is not None
        content = self._message.content()
        message = self._message_object(content, end.usage)
        reason = end.delta.stop_reason
        if reason == "tool_use" and not any(block["type"] == "tool_use" for block in content):
            reason = "end_turn"  # of calls whose arguments are no object, nothing is left
        return msgspec.json.encode(
            msgspec.structs.replace(
                message, stop_reason=reason, stop_sequence=end.delta.stop_sequence, context_management=self._edits
            )
        )

    def _message_object(self, content: list[dict[str, Any]], usage: MessageUsage) -> MessageObject:
        return MessageObject(id=self.id, model=self._model, content=content, usage=usage, left_out=self._left_out)

    def _step(self, delta: Delta) -> list[MessageEvent]:
        if isinstance(delta, Finish):
            return self._finish(delta)
        kind = type(delta), delta.call if isinstance(delta, ToolCallDelta) else 0
        events: list[MessageEvent] = []
        if kind != self._open:
            events += self._close()
            self._open, self._index = kind, self._index + 1
            events.append(BlockStart(self._index, _empty_block(delta)))
        match delta:
            case TextDelta():
                piece = {"type": "text_delta", "text": delta.text}
            case ReasoningDelta():
                self._thinking.update(delta.text.encode())
                if self._omit_thinking:
                    return events
                piece = {"type": "thinking_delta", "thinking": delta.text}
            case ToolCallDelta():
                if not delta.arguments:
                    return events
                piece = {"type": "input_json_delta", "partial_json": delta.arguments}
        events.append(BlockDelta(self._index, piece))
        return events

    def _close(self) -> list[MessageEvent]:
        """Close the open block and return the events for its end; an empty list if no block is open."""
        if self._open is None:
            return []
        events: list[MessageEvent] = []
        if self._open[0] is ReasoningDelta:
            signature = {"type": "signature_delta", "signature": self._thinking.hexdigest()}
            events.append(BlockDelta(self._index, signature))
            self._thinking = hmac.new(self._secret, digestmod=sha256)
        self._open = None
        return [*events, BlockStop(self._index)]

    def _finish(self, finish: Finish) -> list[MessageEvent]:
        if finish.reason is FinishReason.ERROR:
            return []  # the error itself is raised next
        sequence = finish.stop_reason if isinstance(finish.stop_reason, str) else None
        reason: StopReason
        match finish.reason:
            case FinishReason.TOOL_CALLS:
                reason = "tool_use"
            case FinishReason.LENGTH if finish.usage.completion_tokens < self._max_tokens:
                reason = "model_context_window_exceeded"
            case FinishReason.LENGTH:
                reason = "max_tokens"
            case _:
                reason = "end_turn" if sequence is None else "stop_sequence"
        end = MessageDelta(StopDetails(reason, sequence), MessageUsage.of(finish.usage), self._edits)
        return [*self._close(), end, MessageStop()]


def _empty_block(delta: TextDelta | ReasoningDelta | ToolCallDelta) -> dict[str, Any]:
    match delta:
        case TextDelta():
            return {"type": "text", "text": ""}
        case ReasoningDelta():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCallDelta():
            return {"type": "tool_use", "id": delta.id or new_call_id(), "name": delta.name, "input": {}}


class _WholeMessage:
    """Collector that builds the content blocks of an unstreamed message from its events."""

    def __init__(self) -> None:
        self.end: MessageDelta | None = None
        self._blocks: list[tuple[dict[str, Any], list[str]]] = []  # with the pieces of their texts
        self._complete: set[int] = set()  # places of whole calls

    def add(self, event: MessageEvent) -> None:
        """Add an event."""
        match event:
            case BlockStart():
                self._blocks.append((event.content_block, []))
            case BlockDelta(delta={"type": "signature_delta"}):
                self._blocks[-1][0]["signature"] = event.delta["signature"]
            case BlockDelta():
                _, piece = event.delta.values()
                self._blocks[-1][1].append(piece)
            case MessageDelta():
                self.end = event
            case _:
                pass

    def complete(self) -> None:
        """Mark the last block, a tool call, as complete."""
        self._complete.add(len(self._blocks) - 1)

    def content(self) -> list[dict[str, Any]]:
        """Return the content blocks, without tool calls that are incomplete or whose arguments are neither a JSON object nor null."""
        content = []
        for place, (block, pieces) in enumerate(self._blocks):
            text, kind = "".join(pieces), block["type"]
            if kind != "tool_use":
                content.append(block | {kind: text})  # a text block has its text in `text`, thinking in `thinking`
            elif place in self._complete:
                given = msgspec.json.decode(text or "{}")
                if given is None or isinstance(given, dict):
                    content.append(block | {"input": given or {}})
        return content
