"""The server's side of the OpenAI Responses protocol: its objects and events as `msgspec` structs.

Names, fields and order are those of `openai` 3.52 (`openai.types.responses`); what the protocol requires and this
server has no use for carries its neutral value. `encode` makes the JSON; it is always valid UTF-8.

Two things are extensions, and clients that do not know them never meet them: the event `heartbeat`, which only browsers
get, and the status `cancelled` of a response that the client's `response.cancel` ended.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

ItemStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]


class OutputText(Struct, frozen=True, tag_field="type", tag="output_text"):
    """A piece of content: the answer's text."""

    text: str
    annotations: list[str] = []
    logprobs: list[str] = []


class ReasoningText(Struct, frozen=True, tag_field="type", tag="reasoning_text"):
    """A piece of content: the thinking's text."""

    text: str


class MessageItem(Struct, frozen=True, tag_field="type", tag="message"):
    """An output item: a message of the assistant."""

    id: str
    status: ItemStatus
    content: list[OutputText]
    role: Literal["assistant"] = "assistant"


class ReasoningItem(Struct, frozen=True, tag_field="type", tag="reasoning"):
    """An output item: what the model thought."""

    id: str
    status: ItemStatus
    content: list[ReasoningText]
    summary: list[str] = []


Part = OutputText | ReasoningText
Item = MessageItem | ReasoningItem


class TextFormat(Struct, frozen=True, tag_field="type", tag="text"):
    """Plain text, the only format of an answer."""


class TextConfig(Struct, frozen=True):
    """How an answer is formatted."""

    format: TextFormat = TextFormat()


class InputTokensDetails(Struct, frozen=True):
    """The protocol's cache counters; engines do not report them, so they are 0."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(Struct, frozen=True):
    """How many of the output tokens were thinking."""

    reasoning_tokens: int


class ResponseUsage(Struct, frozen=True):
    """Token counts in the protocol's words."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    output_tokens_details: OutputTokensDetails
    input_tokens_details: InputTokensDetails = InputTokensDetails()


class ResponseError(Struct, frozen=True):
    """Why a response failed."""

    code: Literal["server_error", "invalid_prompt"]
    message: str


class IncompleteDetails(Struct, frozen=True):
    """Why a response is not complete; `cancelled` is an extension."""

    reason: Literal["max_output_tokens", "cancelled"]


class Response(Struct, frozen=True, kw_only=True):
    """The response object that the lifecycle events carry."""

    id: str
    created_at: float
    model: str
    status: ResponseStatus
    object: Literal["response"] = "response"
    output: list[Item] = []
    completed_at: float | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, str] = {}
    previous_response_id: str | None = None
    reasoning: dict[str, str | None] | None = None
    temperature: float | None = None
    top_p: float | None = None
    usage: ResponseUsage | None = None
    user: str | None = None
    parallel_tool_calls: bool = False
    store: bool = False
    text: TextConfig = TextConfig()
    tool_choice: str = "none"
    tools: list[str] = []
    truncation: str = "disabled"


class _Event(Struct, frozen=True, kw_only=True, tag_field="type"):
    sequence_number: int


class _Lifecycle(_Event, frozen=True, kw_only=True):
    response: Response


class ResponseCreated(_Lifecycle, frozen=True, kw_only=True, tag="response.created"):
    """The request was accepted."""


class ResponseInProgress(_Lifecycle, frozen=True, kw_only=True, tag="response.in_progress"):
    """The engine is at work."""


class ResponseCompleted(_Lifecycle, frozen=True, kw_only=True, tag="response.completed"):
    """The last event of a response that ended by itself or by a stop string."""


class ResponseIncomplete(_Lifecycle, frozen=True, kw_only=True, tag="response.incomplete"):
    """The last event of a response that was cut short: by the token limit or by `response.cancel`."""


class ResponseFailed(_Lifecycle, frozen=True, kw_only=True, tag="response.failed"):
    """The last event of a response that an error ended."""


class OutputItemAdded(_Event, frozen=True, kw_only=True, tag="response.output_item.added"):
    """A message or a stretch of thinking begins."""

    output_index: int
    item: Item


class OutputItemDone(_Event, frozen=True, kw_only=True, tag="response.output_item.done"):
    """A message or a stretch of thinking has ended."""

    output_index: int
    item: Item


class _InItem(_Event, frozen=True, kw_only=True):
    item_id: str
    output_index: int
    content_index: int = 0


class ContentPartAdded(_InItem, frozen=True, kw_only=True, tag="response.content_part.added"):
    """The item's one part begins."""

    part: Part


class ContentPartDone(_InItem, frozen=True, kw_only=True, tag="response.content_part.done"):
    """The item's one part has ended."""

    part: Part


class OutputTextDelta(_InItem, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """More of the answer."""

    delta: str
    logprobs: list[str] = []


class OutputTextDone(_InItem, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The whole answer."""

    text: str
    logprobs: list[str] = []


class ReasoningTextDelta(_InItem, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    """More of the thinking."""

    delta: str


class ReasoningTextDone(_InItem, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    """The whole stretch of thinking."""

    text: str


class ErrorDetail(Struct, frozen=True):
    """What was wrong with a client's message; `param` is the field at fault."""

    message: str
    code: str
    param: str | None = None
    type: str = "invalid_request_error"


class ErrorEvent(Struct, frozen=True, tag_field="type", tag="error"):
    """The answer to a message that breaks the protocol; it belongs to no response, and the connection lives on."""

    error: ErrorDetail
    status: int = 400


class Heartbeat(Struct, frozen=True, tag_field="type", tag="heartbeat"):
    """A sign of life for browsers, which cannot send pings; the next one comes `interval` seconds later."""

    interval: float


ResponseEvent = (
    ResponseCreated
    | ResponseInProgress
    | ResponseCompleted
    | ResponseIncomplete
    | ResponseFailed
    | OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | OutputTextDelta
    | OutputTextDone
    | ReasoningTextDelta
    | ReasoningTextDone
)
ServerEvent = ResponseEvent | ErrorEvent | Heartbeat

_encoder = msgspec.json.Encoder()


def encode(event: ServerEvent) -> bytes:
    """The event as JSON in UTF-8; raises `UnicodeEncodeError` for a lone surrogate rather than send it."""
    return _encoder.encode(event)
