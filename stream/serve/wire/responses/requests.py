"""The client's side of the OpenAI Responses protocol: one JSON message in, one checked request out.

Three client events are known: `response.create`, and two extensions: `response.cancel`, named as in OpenAI's Realtime
protocol, and `response.resume`, whose `starting_after` is that of OpenAI's `GET /v1/responses/ID`. A field that this
server does not offer raises an error with its name and value, unless its value asks for nothing (`tools: []`, `store: false`), so
that no setting is silently ignored. `null` means unset.

Extensions to `response.create`, named as in the Chat Completions of other servers: `stop`, `top_k`, `seed`,
`return_token_ids`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct

from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.responses.input_items import (
    InputItem,
    ItemReference,
    conversation_of,
    left_out_of,
    tools_of,
)
from tokenweir.stream.serve.wire.responses.response_object import Item, TextConfig
from tokenweir.stream.serve.wire.responses.response_tools import CLIENT_TOOLS, Choice, ClientTool, ServerTool, ToolSet
from tokenweir.stream.serve.wire.shared.checking import (
    check_length,
    convert,
    count_items,
    offered_fields,
    parse_object,
    short_json,
)
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.fields import StopString, ThinkingBudget, effort_kwargs, sampling_of
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage
from tokenweir.stream.serve.wire.shared.prompt_end import Continued, prompt_end_kwargs


class Reasoning(Struct, frozen=True, forbid_unknown_fields=True):
    """The field `reasoning` of a request: how much to think, and whether thinking is sent as a summary.

    `generate_summary` is accepted and has no effect. `context` and `mode` have one value each: the template decides which
    earlier thinking the model sees, and there is one mode.
    """

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: str | None = None
    context: Literal["auto"] | None = None
    mode: Literal["standard"] | None = None


class JsonFormat(Struct, frozen=True, rename={"json_schema": "schema"}):
    """The field `text.format` of a request: plain text, any JSON object, or JSON that matches a schema."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    json_schema: dict[str, Any] | None = None
    strict: bool | None = None


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """The field `text` of a request: the format of the answer.

    `verbosity` is only repeated in the response object.
    """

    format: JsonFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None

    def echo(self) -> TextConfig:
        """Return this configuration in the form of the response object, which repeats it."""
        if self.format is None or self.format.type == "text":
            return TextConfig(verbosity=self.verbosity or UNSET)
        given = {name: value for name, value in msgspec.to_builtins(self.format).items() if value is not None}
        return TextConfig(
            {"strict": True} | given if self.format.type == "json_schema" else given, self.verbosity or UNSET
        )


Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
"""With OpenAI's bounds: a response repeats it in three events."""


class InputFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of a request that make the conversation: its input, and the response that it continues."""

    model: str | None = None
    input: str | list[InputItem] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    prompt_cache_key: str | None = None
    service_tier: Literal["auto", "default"] | None = None

    @property
    def references(self) -> list[str]:
        """The ids of all item references in the input."""
        given = () if self.input is None or isinstance(self.input, str) else self.input
        return [item.id for item in given if isinstance(item, ItemReference)]

    @property
    def left_out(self) -> list[str]:
        """The paths of the request's parts that the prompt omits."""
        return left_out_of(self.input)

    def messages(
        self,
        after: Iterable[ChatMessage] = (),
        *,
        max_items: int = 2048,
        find: Callable[[str], Item | None] = lambda _: None,
    ) -> list[ChatMessage]:
        """Return the conversation as messages for a chat template, without `instructions`.

        Args:
            after: The messages before the input.
            max_items: Most messages and calls, those in `after` included.
            find: Returns the output item of a stored response by its id, or None for an unknown id.

        Raises:
            RequestError: The output of a call that was never made, a reference to an unknown item, neither messages nor
                instructions, or too many messages.

        """
        messages = conversation_of(() if self.input is None else self.input, after, max_items=max_items, find=find)
        check_length(messages, max_items)
        if not messages and self.instructions is None:
            raise RequestError("input is missing", code="missing_required_parameter", param="input")
        return messages


class ResponseCompact(InputFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/responses/compact`, which asks for a shorter form of a conversation; `model` is required."""


class ResponseCreate(InputFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The event `response.create`.

    Attributes:
        model: The name of an engine; None is the server's default.
        input: The new messages; a string is one user message. Items that an earlier response put out may be sent back.
        instructions: A system message before all others; not carried over by `previous_response_id`.
        previous_response_id: Continue from this response: a stored one of this client, or the last one of this connection.
        max_output_tokens: Most tokens to generate, thinking included.
        temperature: Temperature of sampling; 0 always takes the likeliest token.
        top_p: Probability mass of nucleus sampling.
        reasoning: How much to think, handed to the chat template.
        metadata: Repeated in the response object.
        user: Repeated in the response object.
        tools: Functions, custom tools and namespaces of both, which the model may call, handed to the chat template as
            functions. Nothing holds the model to their schemas, so the response object says `strict: false`. Tools of
            other types are for the server to run, and this one has none: the model is not told of them, and the
            response object does not repeat them.
        tool_choice: "none" leaves the tools out; "required" and one function as for `chat()`.
        parallel_tool_calls: Whether an answer may have several calls; false ends it when its first one is whole.
        include: The tokens of the answer with their logprobs, those without text (tags) beside the text after them. An
            engine that gives none fails the response.
        store: False keeps the conversation for this connection only.
        text: A JSON schema for engines that can enforce one.
        background: The response survives a lost connection for a grace period, and can be resumed.
        generate: False takes the messages and answers with nothing, so that later ones can follow by
            `previous_response_id`; Codex opens its sockets so.
        top_logprobs: How many of the likeliest tokens stand beside each token that `include` asks for.
        stop: Extension: strings that end the answer.
        top_k: Extension: sample from this many of the likeliest tokens only.
        seed: Extension: seed of sampling, for a repeatable answer.
        thinking_token_budget: Extension: most tokens of thinking.
        continue_final_message: Extension: the answer continues the last message, as in chat completions. Such an answer is not
            stored, because it is half of a message.
        return_token_ids: Extension: the events of the answer bring the ids of its tokens, with their logprobs where the
            engine gives them, and the last event those of the prompt.

    """

    type: Literal["response.create"]
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    reasoning: Reasoning | None = None
    metadata: Metadata | None = None
    user: str | None = None
    tools: list[ClientTool | ServerTool] | None = None
    tool_choice: Choice | None = None
    parallel_tool_calls: bool | None = None
    background: bool | None = None
    generate: bool | None = None
    include: list[str] = []
    store: bool | None = None
    text: Text | None = None
    max_tool_calls: Annotated[int, Meta(ge=1)] | None = None
    safety_identifier: str | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    stop: StopString | Annotated[list[StopString], Meta(max_length=16)] | None = None
    top_k: Annotated[int, Meta(ge=1)] | None = None
    seed: int | None = None
    return_token_ids: bool | None = None
    thinking_token_budget: ThinkingBudget | None = None
    continue_final_message: Continued = False

    @property
    def logprobs(self) -> bool:
        """Whether the request asks for the logprobs of the answer's tokens."""
        return "message.output_text.logprobs" in self.include or bool(self.top_logprobs)

    @property
    def stored(self) -> bool:
        """Whether later requests may continue the response, from any connection."""
        return self.store is not False and not self.continue_final_message

    @property
    def tool_set(self) -> ToolSet:
        """The tools that the model is shown, as functions: those of the request, and of items of its input."""
        return ToolSet(self.tools or (), tools_of(self.input))

    @property
    def left_out(self) -> list[str]:
        """The paths of the request's parts that the prompt omits: of its input, and tools that a server would run."""
        tools = enumerate(self.tools or ())
        return [f"tools[{place}]" for place, tool in tools if isinstance(tool, ServerTool)] + left_out_of(self.input)

    def sampling(self, *, max_tokens: int | None) -> Sampling:
        """Return the sampling parameters for the engine.

        Args:
            max_tokens: Most tokens of the answer, in place of the request's `max_output_tokens`; None sets no limit.

        """
        return sampling_of(
            self,
            self.stop,
            max_tokens=max_tokens,
            top_logprobs=self.top_logprobs or 0,
            json_schema=None if self.text is None else schema_of(self.text.format),
        )

    def template_kwargs(self) -> dict[str, Any]:
        """Return the variables for `reasoning.effort` and the end of the prompt; empty if both are unset.

        `enable_thinking` is what Qwen3, GLM and SmolLM3 read, `thinking` DeepSeek V3.1 and Granite, `reasoning_effort`
        gpt-oss; a template ignores those it does not know.
        """
        effort = effort_kwargs(None if self.reasoning is None else self.reasoning.effort)
        return effort | prompt_end_kwargs(None, self.continue_final_message)


def schema_of(wanted: JsonFormat | None) -> dict[str, Any] | None:
    """Return the JSON schema that the answer must match.

    It is `{"type": "object"}` for the type `json_object`, and None if no format or plain text is requested.
    """
    if wanted is None or wanted.type == "text":
        return None
    return {"type": "object"} if wanted.type == "json_object" else wanted.json_schema or {}


class ResponseCancel(Struct, frozen=True, forbid_unknown_fields=True):
    """The event `response.cancel`: stop generating.

    With `response_id` only that response is stopped, not one that has begun since.
    """

    type: Literal["response.cancel"]
    response_id: str | None = None


class ResponseResume(Struct, frozen=True, forbid_unknown_fields=True):
    """The event `response.resume`: send the events of a background response, also on another connection.

    They are the events after the sequence number `starting_after`, or all of them if it is None.
    """

    type: Literal["response.resume"]
    response_id: str
    starting_after: Annotated[int, Meta(ge=-1)] | None = None


T = TypeVar("T", bound=Struct)

ClientEvent = ResponseCreate | ResponseCancel | ResponseResume

_EVENTS: dict[str, type[ClientEvent]] = {
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
    "response.resume": ResponseResume,
}

# Fields of the protocol that this server does not offer, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "logit_bias": ({},),
    "truncation": ("disabled", "auto"),
}

# Fields that change no output and are not repeated in the response object.
_IGNORED = frozenset(
    {"client_metadata", "prediction", "prompt_cache_options", "prompt_cache_retention", "stream_options"}
)


def parse_event(data: str | bytes, *, max_items: int = 2048) -> ClientEvent:
    """Parse and check one message of a client on the websocket.

    Args:
        data: A text frame; bytes are a binary frame, which is refused.
        max_items: Most entries of the input and of the tools each, content parts included.

    Raises:
        RequestError: The message is invalid; the error says what is wrong, in which field, and its value.

    """
    if isinstance(data, bytes):
        raise RequestError(f"a binary frame of {len(data)} bytes; events are JSON in text frames", code="binary_frame")
    event = parse_object(data)
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _EVENTS:
        known = ", ".join(_EVENTS)
        raise RequestError(f"unknown event {short_json(kind)}; known are {known}", code="unknown_event", param="type")
    return _checked(event, _EVENTS[kind], max_items)


def parse_create(body: dict[str, Any], *, max_items: int = 2048) -> ResponseCreate:
    """Check a decoded body of `POST /v1/responses` and convert it to a struct; raise `RequestError` for an invalid body."""
    request = _checked({**body, "type": "response.create"}, ResponseCreate, max_items)
    assert isinstance(request, ResponseCreate)
    return request


def parse_compact(body: dict[str, Any], *, max_items: int = 2048) -> ResponseCompact:
    """Check a decoded body of `POST /v1/responses/compact` and convert it to a struct.

    Raise `RequestError` for an invalid body.
    """
    if body.get("model") is None:
        raise RequestError("model is missing", code="missing_required_parameter", param="model")
    return _checked(body, ResponseCompact, max_items)


class _Continuing(Struct, frozen=True, tag_field="type", tag="response.create"):
    previous_response_id: str | None = None


def previous_response_id_of(data: str | bytes) -> str | None:
    """Return the `previous_response_id` of a `response.create` message, even if its other fields are invalid.

    Return None if the message has no such id, is not JSON, or is another event.
    """
    try:
        return msgspec.json.decode(data, type=_Continuing).previous_response_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _checked(event: dict[str, Any], struct: type[T], max_items: int) -> T:
    count_items(event, ("input", "tools"), max_items)
    kept = offered_fields(event, struct, ignored=_IGNORED, neutral=_NEUTRAL)
    if isinstance(items := kept.get("input"), list):  # those without `type` get it
        kept["input"] = [
            _tools_marked({**item, "type": kind}) if isinstance(item, dict) and (kind := _type_of(item)) else item
            for item in items
        ]
    return convert(_tools_marked(kept), struct)


def _type_of(item: dict[str, Any]) -> Any:
    """Return the type of an input item; one without `type` is a message if it has a role, else a reference by its `id`."""
    return item.get("type") or (
        "message" if "role" in item else "item_reference" if item.keys() <= {"id", "type"} else None
    )


def _tools_marked(owner: Any) -> Any:
    """Return a request, or an item that brings tools, with those tools marked that a server would have to run."""
    if not isinstance(owner, dict) or not isinstance(tools := owner.get("tools"), list):
        return owner
    return owner | {
        "tools": [
            {"type": "server"} if isinstance(tool, dict) and tool.get("type") not in CLIENT_TOOLS else tool
            for tool in tools
        ]
    }
