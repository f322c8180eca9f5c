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
from tokenweir.stream.serve.wire.errors import RequestError, messages_error
from tokenweir.stream.serve.wire.items import new_id

StopReason = Literal["end_turn", "max_tokens", "stop_sequence", "tool_use", "model_context_window_exceeded"]


class TokenDetails(Struct, frozen=True):
    """Number of tokens of thinking."""

    thinking_tokens: int


class MessageUsage(Struct, frozen=True):
    """Token counts; None if this server does not count them. `input_tokens` excludes tokens read from a cache."""

    input_tokens: int
    output_tokens: int
    output_tokens_details: TokenDetails
    cache_creation_input_tokens: None = None
    cache_read_input_tokens: int | None = None

    @classmethod
    def of(cls, usage: Usage) -> MessageUsage:
        """Make them of the counts of an answer."""
        cached = usage.cached_tokens
        return cls(
            usage.prompt_tokens - cached,
            usage.completion_tokens,
            TokenDetails(usage.reasoning_tokens),
            cache_read_input_tokens=cached or None,
        )


class AppliedEdits(Struct, frozen=True):
    """Edits of the context that were applied: none ever are."""

    applied_edits: list[str] = []


class Answered(Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of the assistant; `left_out` is an extension: the paths of the parts that the prompt omits."""

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
    """The event that opens a message."""

    message: Answered


class BlockStart(Struct, frozen=True, tag_field="type", tag="content_block_start"):
    """The event that opens a block."""

    index: int
    content_block: dict[str, Any]


class BlockDelta(Struct, frozen=True, tag_field="type", tag="content_block_delta"):
    """An increment of a block."""

    index: int
    delta: dict[str, str]


class BlockStop(Struct, frozen=True, tag_field="type", tag="content_block_stop"):
    """The event that closes a block."""

    index: int


class Stop(Struct, frozen=True):
    """Why a message ended."""

    stop_reason: StopReason
    stop_sequence: str | None


class MessageDelta(Struct, frozen=True, tag_field="type", tag="message_delta"):
    """The end of a message, with its counts."""

    delta: Stop
    usage: MessageUsage
    context_management: AppliedEdits | UnsetType = UNSET


class MessageStop(Struct, frozen=True, tag_field="type", tag="message_stop"):
    """The last event."""


MessageEvent = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop

_encoder = msgspec.json.Encoder()


def event_bytes(event: MessageEvent) -> bytes:
    """Return a server-sent event."""
    return b"event: %b\ndata: %b\n\n" % (str(type(event).__struct_config__.tag).encode(), _encoder.encode(event))


def error_event(error: RequestError) -> bytes:
    """Return the event that ends a stream which an error cut off."""
    return b"event: error\ndata: %b\n\n" % _encoder.encode(messages_error(error))


class MessageAnswer:
    """One answer: as events while its deltas come, or as one message after them.

    Args:
        secret: Key of the signatures of thinking.
        max_tokens: The limit on the answer; one that ended by its length before had no room left in the context.
        omit_thinking: Send the signatures of thinking only.
        left_out: Paths of the parts of the request that the prompt omits.
        edits: Whether the client asked for edits of the context.

    """

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

    def start(self, prompt_tokens: int) -> list[bytes]:
        """Return the event that opens the message."""
        usage = MessageUsage(prompt_tokens, 0, TokenDetails(0))
        return [event_bytes(MessageStart(self._answered([], usage)))]

    def chunks(self, deltas: Iterable[Delta]) -> list[bytes]:
        """Return the events of deltas."""
        return [event_bytes(event) for delta in deltas for event in self._step(delta)]

    def add(self, deltas: Iterable[Delta]) -> None:
        """Take deltas for `whole`."""
        for delta in deltas:
            for event in self._step(delta):
                self._message.add(event)
            if isinstance(delta, ToolCallDelta) and delta.complete:
                self._message.complete()

    def whole(self) -> bytes:
        """Return the message, as JSON."""
        end = self._message.end
        assert end is not None
        content = self._message.content()
        answered = self._answered(content, end.usage)
        reason = end.delta.stop_reason
        if reason == "tool_use" and not any(block["type"] == "tool_use" for block in content):
            reason = "end_turn"  # of calls whose arguments are no object, nothing is left
        return _encoder.encode(
            msgspec.structs.replace(
                answered, stop_reason=reason, stop_sequence=end.delta.stop_sequence, context_management=self._edits
            )
        )

    def _answered(self, content: list[dict[str, Any]], usage: MessageUsage) -> Answered:
        return Answered(id=self.id, model=self._model, content=content, usage=usage, left_out=self._left_out)

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
        """Return the events that end the open block."""
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
        end = MessageDelta(Stop(reason, sequence), MessageUsage.of(finish.usage), self._edits)
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
    """One message, built from its events."""

    def __init__(self) -> None:
        self.end: MessageDelta | None = None
        self._blocks: list[tuple[dict[str, Any], list[str]]] = []  # with the pieces of their texts
        self._complete: set[int] = set()  # places of whole calls

    def add(self, event: MessageEvent) -> None:
        """Take an event."""
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
        """Mark the open call as whole."""
        self._complete.add(len(self._blocks) - 1)

    def content(self) -> list[dict[str, Any]]:
        """Return the blocks, without calls that are incomplete or whose arguments are no object."""
        content = []
        for place, (block, pieces) in enumerate(self._blocks):
            text, kind = "".join(pieces), block["type"]
            if kind != "tool_use":
                content.append(block | {kind: text})  # a text block has its text in `text`, thinking in `thinking`
            elif place in self._complete and isinstance(given := msgspec.json.decode(text or "{}"), dict):
                content.append(block | {"input": given})
        return content
