"""The server's events of the OpenAI Responses protocol, as `msgspec` structs.

Names, fields and order are those of `openai` 3.52, as in `response_object.py`. `encode` makes the JSON; it is always valid
UTF-8.

Two parts are extensions, and clients that do not ask for them never get them: the event `heartbeat`, which only browsers
get, and the fields of `return_token_ids`.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.serve.wire.responses.response_object import Item, Part, Response, SummaryText
from tokenweir.stream.serve.wire.shared.errors import ErrorDetail
from tokenweir.stream.serve.wire.shared.logprobs import Logprob


class _Event(Struct, frozen=True, kw_only=True, gc=False, tag_field="type"):  # of what cannot form a cycle
    sequence_number: int


class WithTokens(_Event, frozen=True, kw_only=True):
    """Base of the events that carry tokens of the answer.

    The fields are set only if the request has `return_token_ids`. Each token is in exactly one event.
    """

    token_ids: list[int] | UnsetType = UNSET
    token_logprobs: list[float | None] | UnsetType = UNSET


class _Lifecycle(_Event, frozen=True, kw_only=True):
    response: Response


class _Last(WithTokens, frozen=True, kw_only=True):
    """Base of the last event of a response.

    If the request has `return_token_ids`, the event carries the remaining tokens of the answer and those of the prompt.
    """

    response: Response
    prompt_token_ids: list[int] | UnsetType = UNSET


class ResponseCreated(_Lifecycle, frozen=True, kw_only=True, tag="response.created"):
    """The first event of a response: the request was accepted."""


class ResponseInProgress(_Lifecycle, frozen=True, kw_only=True, tag="response.in_progress"):
    """The engine is at work; always follows `response.created`."""


class ResponseCompleted(_Last, frozen=True, kw_only=True, tag="response.completed"):
    """The last event of a response that ended by itself or by a stop string."""


class ResponseIncomplete(_Last, frozen=True, kw_only=True, tag="response.incomplete"):
    """The last event of a response that was cut short: by the token limit or by `response.cancel`."""


class ResponseFailed(_Last, frozen=True, kw_only=True, tag="response.failed"):
    """The last event of a response that an error ended."""


class _OutputItem(_Event, frozen=True, kw_only=True):
    output_index: int
    item: Item


class OutputItemAdded(_OutputItem, frozen=True, kw_only=True, tag="response.output_item.added"):
    """An output item begins: a message, a stretch of thinking or a tool call."""


class OutputItemDone(_OutputItem, frozen=True, kw_only=True, tag="response.output_item.done"):
    """An output item has ended: a message, a stretch of thinking or a tool call."""


class _OfItem(WithTokens, frozen=True, kw_only=True):
    item_id: str
    output_index: int


class _InItem(_OfItem, frozen=True, kw_only=True):
    content_index: int = 0


class ContentPartAdded(_InItem, frozen=True, kw_only=True, tag="response.content_part.added"):
    """The content part of an output item begins; each item has only one."""

    part: Part


class ContentPartDone(_InItem, frozen=True, kw_only=True, tag="response.content_part.done"):
    """The content part of an output item has ended; each item has only one."""

    part: Part


class OutputTextDelta(_InItem, frozen=True, kw_only=True, tag="response.output_text.delta"):
    """Increment of the answer's text."""

    delta: str
    logprobs: list[Logprob] = []


class OutputTextDone(_InItem, frozen=True, kw_only=True, tag="response.output_text.done"):
    """The whole text of a message."""

    text: str
    logprobs: list[Logprob] = []


class ReasoningTextDelta(_InItem, frozen=True, kw_only=True, tag="response.reasoning_text.delta"):
    """Increment of the thinking."""

    delta: str


class ReasoningTextDone(_InItem, frozen=True, kw_only=True, tag="response.reasoning_text.done"):
    """The whole text of a stretch of thinking."""

    text: str


class ReasoningDelta(ReasoningTextDelta, frozen=True, kw_only=True, tag="response.reasoning.delta"):
    """Increment of the thinking, under the event name of Open Responses."""


class ReasoningDone(ReasoningTextDone, frozen=True, kw_only=True, tag="response.reasoning.done"):
    """The whole text of a stretch of thinking, under the event name of Open Responses."""


class _InSummary(_OfItem, frozen=True, kw_only=True):
    summary_index: int = 0


class ReasoningSummaryPartAdded(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_part.added"):
    """The summary part of a reasoning item begins; each item has only one."""

    part: SummaryText


class ReasoningSummaryPartDone(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_part.done"):
    """The summary part of a reasoning item has ended; each item has only one."""

    part: SummaryText


class ReasoningSummaryTextDelta(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_text.delta"):
    """Increment of the thinking, for a request that asks for a summary: the thinking itself serves as the summary."""

    delta: str


class ReasoningSummaryTextDone(_InSummary, frozen=True, kw_only=True, tag="response.reasoning_summary_text.done"):
    """The whole text of a stretch of thinking, for a request that asks for a summary."""

    text: str


class FunctionCallArgumentsDelta(_OfItem, frozen=True, kw_only=True, tag="response.function_call_arguments.delta"):
    """Increment of a tool call's arguments, a piece of JSON text."""

    delta: str


class FunctionCallArgumentsDone(_OfItem, frozen=True, kw_only=True, tag="response.function_call_arguments.done"):
    """The whole arguments of a tool call, as JSON text."""

    arguments: str


class CustomToolCallInputDelta(_OfItem, frozen=True, kw_only=True, tag="response.custom_tool_call_input.delta"):
    """Increment of the input of a custom tool's call."""

    delta: str


class CustomToolCallInputDone(_OfItem, frozen=True, kw_only=True, tag="response.custom_tool_call_input.done"):
    """The whole input of a custom tool's call."""

    input: str


class ErrorEvent(Struct, frozen=True, tag_field="type", tag="error"):
    """Error for a client's message that cannot be processed; belongs to no response and leaves the connection open."""

    error: ErrorDetail
    status: int = 400


class Heartbeat(Struct, frozen=True, tag_field="type", tag="heartbeat"):
    """Sign of life for browsers, which cannot send pings; the next one follows after `interval` seconds."""

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
    | CustomToolCallInputDelta
    | CustomToolCallInputDone
)
LAST_EVENTS = (ResponseCompleted, ResponseIncomplete, ResponseFailed)
ServerEvent = ResponseEvent | ErrorEvent | Heartbeat

encode: Callable[[ServerEvent], bytes] = msgspec.json.Encoder().encode
"""The event as JSON in UTF-8; raises `UnicodeEncodeError` for a lone surrogate rather than send it."""
