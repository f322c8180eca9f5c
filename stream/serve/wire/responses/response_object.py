"""The response object of the OpenAI Responses protocol, with its output items and usage, as `msgspec` structs.

Names, fields and order are those of `openai` 3.52 (`openai.types.responses`); what the protocol requires and this
server has no use for carries its neutral value. The status `cancelled` of a response that the client's `response.cancel`
ended is an extension.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.events.deltas import Usage
from tokenweir.stream.serve.wire.responses.response_tools import AllowedTools, ClientTool, NamedCustom, NamedFunction
from tokenweir.stream.serve.wire.shared.logprobs import Logprob

ItemStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed", "cancelled"]


class OutputText(Struct, frozen=True, tag_field="type", tag="output_text"):
    """Content part of a message: the text, and its tokens with logprobs if the request asks for them."""

    text: str
    annotations: list[str] = []
    logprobs: list[Logprob] = []


class ReasoningText(Struct, frozen=True, tag_field="type", tag="reasoning_text"):
    """Content part of a reasoning item: the text of the thinking."""

    text: str


class SummaryText(Struct, frozen=True, tag_field="type", tag="summary_text"):
    """Summary part of a reasoning item. It has the whole thinking, which is not summarised."""

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
    namespace: str | UnsetType = UNSET


class CustomToolCallItem(Struct, frozen=True, tag_field="type", tag="custom_tool_call"):
    """An output item: a custom tool that the model wants called; `input` is the text for it."""

    id: str
    status: ItemStatus
    call_id: str
    name: str
    input: str
    namespace: str | UnsetType = UNSET


Part = OutputText | ReasoningText
Item = MessageItem | ReasoningItem | FunctionCallItem | CustomToolCallItem


def text_of(item: Item) -> str:
    """Return the text of a message or of thinking, or the arguments or the input of a tool call."""
    match item:
        case CustomToolCallItem():
            return item.input
        case FunctionCallItem():
            return item.arguments
        case ReasoningItem():
            return "".join([part.text for part in item.content] + [part.text for part in item.summary])
        case _:
            return "".join(part.text for part in item.content)


class TextConfig(Struct, frozen=True):
    """The field `text` of a response: the format of its answer, and `verbosity` as requested.

    `format` is `{"type": "text"}`, or describes a JSON schema if the engine can enforce one.
    """

    format: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "text"})
    verbosity: str | UnsetType = UNSET


class InputTokensDetails(Struct, frozen=True):
    """Number of the prompt's tokens that came from the engine's cache.

    `cache_write_tokens` is always 0, because engines do not report it.
    """

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(Struct, frozen=True):
    """Number of output tokens of thinking."""

    reasoning_tokens: int


class ResponseUsage(Struct, frozen=True):
    """Token counts of a response."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    output_tokens_details: OutputTokensDetails
    input_tokens_details: InputTokensDetails = InputTokensDetails()

    @classmethod
    def of(cls, usage: Usage) -> ResponseUsage:
        """Convert an answer's token counts to the form of the Responses protocol."""
        return cls(
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            output_tokens_details=OutputTokensDetails(usage.reasoning_tokens),
            input_tokens_details=InputTokensDetails(usage.cached_tokens),
        )


class ResponseError(Struct, frozen=True):
    """The reason why a response failed.

    `code` is `server_error`, `invalid_prompt`, `context_length_exceeded` or another.
    """

    code: str
    message: str


class IncompleteDetails(Struct, frozen=True):
    """The reason why a response is not complete; `cancelled` is an extension of the protocol."""

    reason: Literal["max_output_tokens", "cancelled"]


class Response(Struct, frozen=True, kw_only=True):
    """The response object that the lifecycle events carry.

    `left_out` is an extension: the paths of the request's parts that the prompt omits.
    """

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
    tool_choice: str | NamedFunction | NamedCustom | AllowedTools = "none"
    tools: list[ClientTool] = []
    truncation: str = "disabled"
    left_out: list[str] | UnsetType = UNSET
