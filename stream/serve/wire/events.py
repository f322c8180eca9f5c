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

from tokenweir.stream.serve.wire.errors import ErrorDetail
from tokenweir.stream.serve.wire.response_object import Item, Logprob, Part, Response, SummaryText


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
