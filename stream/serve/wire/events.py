"""The server's side of the OpenAI Responses protocol: its objects and events as `msgspec` structs.

Names, fields and order are those of `openai` 3.52 (`openai.types.responses`); what the protocol requires and this
server has no use for carries its neutral value. `encode` makes the JSON; it is always valid UTF-8.

Three parts are extensions, and clients that do not ask for them never get them: the event `heartbeat`, which only browsers
get, the status `cancelled` of a response that the client's `response.cancel` ended, and the fields of `return_token_ids`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.events.deltas import Usage
from tokenweir.stream.serve.wire.errors import ErrorDetail

ItemStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]


class TopLogprob(Struct, frozen=True):
    """A token and the natural logarithm of its probability; `token` has U+FFFD for part of a character."""

    token: str
    logprob: float
    bytes: list[int]


class Logprob(TopLogprob, frozen=True):
    """A token of the answer, and the likeliest tokens in its place."""

    top_logprobs: list[TopLogprob] = []


class OutputText(Struct, frozen=True, tag_field="type", tag="output_text"):
    """A piece of content: the answer's text, and its tokens if the request includes them."""

    text: str
    annotations: list[str] = []
    logprobs: list[Logprob] = []


class ReasoningText(Struct, frozen=True, tag_field="type", tag="reasoning_text"):
    """A piece of content: the thinking's text."""

    text: str


class SummaryText(Struct, frozen=True, tag_field="type", tag="summary_text"):
    """A piece of a summary: the whole thinking, which is its own summary here."""

    text: str


class MessageItem(Struct, frozen=True, tag_field="type", tag="message"):
    """An output item: a message of the assistant."""

    id: str
    status: ItemStatus
    content: list[OutputText]
    role: Literal["assistant"] = "assistant"


class ReasoningItem(Struct, frozen=True, tag_field="type", tag="reasoning"):
    """An output item: the thinking of the model."""

    id: str
    status: ItemStatus
    content: list[ReasoningText]
    summary: list[SummaryText] = []


class FunctionCallItem(Struct, frozen=True, tag_field="type", tag="function_call"):
    """An output item: a function that the model wants called; `arguments` is JSON if the item is completed."""

    id: str
    status: ItemStatus
    call_id: str
    name: str
    arguments: str


Part = OutputText | ReasoningText
Item = MessageItem | ReasoningItem | FunctionCallItem


def text_of(item: Item) -> str:
    """Return what an item says, thinks, or calls a function with."""
    match item:
        case FunctionCallItem():
            return item.arguments
        case ReasoningItem():
            return "".join([part.text for part in item.content] + [part.text for part in item.summary])
        case _:
            return "".join(part.text for part in item.content)


class FunctionTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """A function that the model may call; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedFunction(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """The one function that is to be called."""

    name: str


class TextConfig(Struct, frozen=True):
    """Format of an answer: `{"type": "text"}`, or a JSON schema if the engine can enforce one."""

    format: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "text"})
    verbosity: str | UnsetType = UNSET


class InputTokensDetails(Struct, frozen=True):
    """The protocol's cache counters; engines do not tell what they write, so that is 0."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(Struct, frozen=True):
    """Number of output tokens of thinking."""

    reasoning_tokens: int


class ResponseUsage(Struct, frozen=True):
    """Token counts in the protocol's words."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    output_tokens_details: OutputTokensDetails
    input_tokens_details: InputTokensDetails = InputTokensDetails()

    @classmethod
    def of(cls, usage: Usage) -> ResponseUsage:
        """Return the counts of an answer."""
        return cls(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            output_tokens_details=OutputTokensDetails(usage.reasoning_tokens),
            input_tokens_details=InputTokensDetails(usage.cached_tokens),
        )


class ResponseError(Struct, frozen=True):
    """Why a response failed: `server_error`, `invalid_prompt`, `context_length_exceeded` and others."""

    code: str
    message: str


class IncompleteDetails(Struct, frozen=True):
    """Why a response is not complete; `cancelled` is an extension."""

    reason: Literal["max_output_tokens", "cancelled"]


class Response(Struct, frozen=True, kw_only=True):
    """The response object that the lifecycle events carry."""

    id: str
    created_at: int
    model: str
    status: ResponseStatus
    object: Literal["response"] = "response"
    output: list[Item] = []
    completed_at: int | None = None
    error: ResponseError | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, str] = {}
    previous_response_id: str | None = None
    reasoning: dict[str, str | None] | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    top_logprobs: int = 0
    max_tool_calls: int | None = None
    usage: ResponseUsage | None = None
    user: str | None = None
    background: bool = False
    parallel_tool_calls: bool = False
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    service_tier: str = "default"
    store: bool = False
    text: TextConfig = TextConfig()
    tool_choice: str | NamedFunction = "none"
    tools: list[FunctionTool] = []
    truncation: str = "disabled"


class _Event(Struct, frozen=True, kw_only=True, gc=False, tag_field="type"):  # of what cannot form a cycle
    sequence_number: int


class WithTokens(_Event, frozen=True, kw_only=True):
    """An event that brings tokens, if the request asks for their ids: each token is in one event."""

    token_ids: list[int] | UnsetType = UNSET
    token_logprobs: list[float | None] | UnsetType = UNSET


class _Lifecycle(_Event, frozen=True, kw_only=True):
    response: Response


class _Last(WithTokens, frozen=True, kw_only=True):
    """The last event, with the tokens that brought no text after any other, and those of the prompt."""

    response: Response
    prompt_token_ids: list[int] | UnsetType = UNSET


class ResponseCreated(_Lifecycle, frozen=True, kw_only=True, tag="response.created"):
    """The request was accepted."""


class ResponseInProgress(_Lifecycle, frozen=True, kw_only=True, tag="response.in_progress"):
    """The engine is at work."""


class ResponseCompleted(_Last, frozen=True, kw_only=True, tag="response.completed"):
    """The last event of a response that ended by itself or by a stop string."""


class ResponseIncomplete(_Last, frozen=True, kw_only=True, tag="response.incomplete"):
    """The last event of a response that was cut short: by the token limit or by `response.cancel`."""


class ResponseFailed(_Last, frozen=True, kw_only=True, tag="response.failed"):
    """The last event of a response that an error ended."""


class OutputItemAdded(_Event, frozen=True, kw_only=True, tag="response.output_item.added"):
    """A message, a stretch of thinking or a call begins."""

    output_index: int
    item: Item


class OutputItemDone(_Event, frozen=True, kw_only=True, tag="response.output_item.done"):
    """A message, a stretch of thinking or a call has ended."""

    output_index: int
    item: Item


class _OfItem(WithTokens, frozen=True, kw_only=True):
    item_id: str
    output_index: int


class _InItem(_OfItem, frozen=True, kw_only=True):
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
    logprobs: list[Logprob] = []


class OutputTextDone(_InItem, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The whole answer."""

    text: str
    logprobs: list[Logprob] = []


class ReasoningTextDelta(_InItem, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    """More of the thinking."""

    delta: str


class ReasoningTextDone(_InItem, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    """The whole stretch of thinking."""

    text: str


class ReasoningDelta(ReasoningTextDelta, frozen=True, kw_only=True, tag="response.reasoning.delta"):
    """More of the thinking, under the name that Open Responses has for it."""


class ReasoningDone(ReasoningTextDone, frozen=True, kw_only=True, tag="response.reasoning.done"):
    """The whole stretch of thinking, likewise."""


class _InSummary(_OfItem, frozen=True, kw_only=True):
    summary_index: int = 0


class ReasoningSummaryPartAdded(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_part.added"):
    """The summary's one part begins."""

    part: SummaryText


class ReasoningSummaryPartDone(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_part.done"):
    """The summary's one part has ended."""

    part: SummaryText


class ReasoningSummaryTextDelta(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_text.delta"):
    """More of the thinking, for a request that asks for a summary."""

    delta: str


class ReasoningSummaryTextDone(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_text.done"):
    """The whole stretch of thinking, likewise."""

    text: str


class FunctionCallArgumentsDelta(_OfItem, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"):
    """More of the arguments of a call."""

    delta: str


class FunctionCallArgumentsDone(_Event, frozen=True, kw_only=True, tag="response.function_call_arguments.done"):
    """The whole arguments of a call."""

    item_id: str
    output_index: int
    arguments: str


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
    | ReasoningDelta
    | ReasoningDone
    | ReasoningSummaryPartAdded
    | ReasoningSummaryPartDone
    | ReasoningSummaryTextDelta
    | ReasoningSummaryTextDone
    | FunctionCallArgumentsDelta
    | FunctionCallArgumentsDone
)
LAST_EVENTS = (ResponseCompleted, ResponseIncomplete, ResponseFailed)
ServerEvent = ResponseEvent | ErrorEvent | Heartbeat

encode: Callable[[ServerEvent], bytes] = msgspec.json.Encoder().encode
"""The event as JSON in UTF-8; raises `UnicodeEncodeError` for a lone surrogate rather than send it."""
