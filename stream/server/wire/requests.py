"""The client's side of the OpenAI Responses protocol: one JSON message in, one checked request out.

Three client events are known: `response.create`, and two extensions: `response.cancel`, named as in OpenAI's Realtime
protocol, and `response.resume`, whose `starting_after` is that of OpenAI's `GET /v1/responses/ID`. A field that this
server does not offer is refused by name and value, unless its value asks for nothing (`tools: []`, `store: false`), so
that nobody believes in a setting that has no effect. `null` means unset.

Extensions to `response.create`, named as in the Chat Completions of other servers: `stop`, `top_k`, `seed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.engines.protocol import Sampling
from tokenweir.stream.server.wire.events import FunctionTool
from tokenweir.stream.server.wire.messages import ChatMessage, Conversation

Stop = Annotated[str, Meta(min_length=1, max_length=1000)]
"""A stop string; looking for it takes some 300 bytes of memory a character."""


class RequestError(ProtocolError):
    """A client's message that breaks the protocol.

    Attributes:
        code: A word that programs can compare.
        param: The field at fault, such as `input[0].role`; None where it is the whole message.

    """

    def __init__(self, message: str, *, code: str = "invalid_value", param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class _InputText(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="input_text"):
    text: str


class _OutputText(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="output_text"):
    text: str
    annotations: list[Any] | None = None
    logprobs: list[Any] | None = None


class _ReasoningText(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="reasoning_text"):
    text: str


class _Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="message"):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[_InputText | _OutputText]
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class _Reasoning(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="reasoning"):
    content: list[_ReasoningText]
    summary: list[Any] | None = None
    id: str | None = None
    status: str | None = None


class _FunctionCall(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class _FunctionCallOutput(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function_call_output"
):
    call_id: str
    output: str | list[_InputText]
    id: str | None = None
    status: str | None = None


class Reasoning(Struct, frozen=True, forbid_unknown_fields=True):
    """How much to think."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


class ResponseCreate(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The event `response.create`.

    Attributes:
        model: The name of an engine; None is the server's default.
        input: The new messages; a string is one user message. Items that an earlier response put out may be sent back.
        instructions: A system message before all others; not carried over by `previous_response_id`.
        previous_response_id: Continue from this response, which must be the last one of this connection.
        max_output_tokens: Most tokens to generate, thinking included.
        temperature: 0 is greedy.
        top_p: Nucleus.
        reasoning: How much to think, handed to the chat template.
        metadata: Repeated in the response object.
        user: Repeated in the response object.
        tools: Functions that the model may call, handed to the chat template. `strict` cannot be promised.
        tool_choice: "none" leaves the tools out.
        parallel_tool_calls: Whether an answer may have several calls; with tools it may.
        include: The tokens of the answer with their logprobs, those without text (tags) beside the text after them. An
            engine that gives none fails the response.
        background: The response goes on for a while when the connection is lost, and can be resumed.
        stop: Extension: strings that end the answer.
        top_k: Extension: most candidates.
        seed: Extension: for a repeatable answer.

    """

    type: Literal["response.create"]
    model: str | None = None
    input: str | list[_Message | _Reasoning | _FunctionCall | _FunctionCallOutput] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    reasoning: Reasoning | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    tools: list[FunctionTool] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: bool | None = None
    background: bool | None = None
    include: list[Literal["message.output_text.logprobs"]] = []
    stop: Stop | Annotated[list[Stop], Meta(max_length=16)] | None = None
    top_k: Annotated[int, Meta(ge=1)] | None = None
    seed: int | None = None

    def messages(self, after: Iterable[ChatMessage] = ()) -> list[ChatMessage]:
        """The messages before and the input, as messages for a chat template, without `instructions`.

        Raises:
            RequestError: The output of a call that was never made.

        """
        conversation = Conversation(after)
        if isinstance(self.input, str):
            conversation.say("user", self.input)
            return conversation.end()
        for place, item in enumerate(self.input or ()):
            match item:
                case _Message():
                    conversation.say(item.role, _text(item.content))
                case _Reasoning():
                    conversation.think(_text(item.content))
                case _FunctionCall():
                    conversation.call(item.call_id, item.name, item.arguments)
                case _FunctionCallOutput():
                    try:
                        conversation.answer(item.call_id, _text(item.output))
                    except LookupError as error:
                        raise RequestError(
                            f"input[{place}]: {error.args[0]}", param=f"input[{place}].call_id"
                        ) from error
        return conversation.end()

    def definitions(self) -> list[dict[str, Any]] | None:
        """The tools as chat templates take them; None if the model is to call none."""
        if not self.tools or self.tool_choice == "none":
            return None
        return [{"type": "function", "function": _definition(tool)} for tool in self.tools]

    def sampling(self, *, max_tokens: int | None) -> Sampling:
        """The engine's parameters, under the limit that the server has settled on."""
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return Sampling(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k,
            seed=self.seed,
            stop=stop,
        )

    def template_kwargs(self) -> dict[str, Any]:
        """The template arguments that stand for `reasoning.effort`.

        `enable_thinking` is what Qwen3, GLM and SmolLM3 read, `thinking` DeepSeek V3.1 and Granite, `reasoning_effort`
        gpt-oss; a template ignores those it does not know.
        """
        if self.reasoning is None or self.reasoning.effort is None:
            return {}
        effort = self.reasoning.effort
        if effort == "none":
            return {"enable_thinking": False, "thinking": False}
        return {"enable_thinking": True, "thinking": True, "reasoning_effort": effort}


def _definition(tool: FunctionTool) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {}} if tool.parameters is None else tool.parameters
    return {"name": tool.name, "description": tool.description or "", "parameters": parameters}


def _text(content: str | Sequence[_InputText | _OutputText | _ReasoningText]) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)


class ResponseCancel(Struct, frozen=True, forbid_unknown_fields=True):
    """The event `response.cancel`: stop generating; `response_id` guards against stopping the next response."""

    type: Literal["response.cancel"]
    response_id: str | None = None


class ResponseResume(Struct, frozen=True, forbid_unknown_fields=True):
    """The event `response.resume`: send on a response that was created in the background, on this or another connection.

    Attributes:
        response_id: The response.
        starting_after: The number of the last event that has arrived; None is for all of them.

    """

    type: Literal["response.resume"]
    response_id: str
    starting_after: Annotated[int, Meta(ge=-1)] | None = None


ClientEvent = ResponseCreate | ResponseCancel | ResponseResume

_EVENTS: dict[str, type[ClientEvent]] = {
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
    "response.resume": ResponseResume,
}

# Fields of the protocol that this server does not offer, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "generate": (True,),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "stream": (True,),
    "text": ({}, {"format": {"type": "text"}}),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
}


def parse_event(data: str | bytes) -> ClientEvent:
    """One message of a client, checked.

    Args:
        data: A text frame; bytes stand for a binary frame, which the protocol does not have.

    Raises:
        RequestError: Names what is wrong, where, and the value.

    """
    if isinstance(data, bytes):
        raise RequestError(f"a binary frame of {len(data)} bytes; events are JSON in text frames", code="binary_frame")
    try:
        event = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise RequestError(f"the message is not JSON: {error}", code="invalid_json") from error
    if not isinstance(event, dict):
        raise RequestError(f"an event is a JSON object, not {_show(event)}", code="invalid_type")
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _EVENTS:
        known = ", ".join(_EVENTS)
        raise RequestError(f"unknown event {_show(kind)}; known are {known}", code="unknown_event", param="type")
    struct = _EVENTS[kind]
    event = _supported(event, struct)
    try:
        checked = msgspec.convert(event, struct)
    except msgspec.ValidationError as error:
        raise _located(error, event) from error
    if isinstance(checked, ResponseCreate) and checked.tools:
        _check_tools(checked.tools, checked.parallel_tool_calls)
    return checked


def _check_tools(tools: Sequence[FunctionTool], parallel: bool | None) -> None:
    """Refuse what would take an engine that can be made to follow a grammar."""
    refused = [(f"tools[{place}].strict", "true") for place, tool in enumerate(tools) if tool.strict]
    if parallel is False:
        refused.append(("parallel_tool_calls", "false"))
    for param, value in refused:
        raise RequestError(
            f"{param} is {value}; this server cannot promise it", code="unsupported_parameter", param=param
        )


def _supported(event: dict[str, Any], struct: type[Struct]) -> dict[str, Any]:
    """The event without unset and neutral fields, and with `type` on every input item that may leave it out."""
    kept = {}
    for name, value in event.items():
        if value is None:
            continue
        if name in struct.__struct_fields__:
            kept[name] = value
        elif not any(type(value) is type(neutral) and value == neutral for neutral in _NEUTRAL.get(name, ())):
            name = name[:80]
            raise RequestError(
                f"{name} is {_show(value)}; this server does not offer it", code="unsupported_parameter", param=name
            )
    if isinstance(items := kept.get("input"), list):
        kept["input"] = [
            {"type": "message", **item} if isinstance(item, dict) and "role" in item else item for item in items
        ]
    return kept


def _located(error: msgspec.ValidationError, event: dict[str, Any]) -> RequestError:
    """The error with the path as `param` and the value that stands there; `msgspec` gives the path as `$.a[0].b`."""
    text = str(error)
    message, found, path = text.rpartition(" - at `$")  # the last one: the message may quote the client before it
    if not found:
        return RequestError(text)
    param = path.removesuffix("`").removeprefix(".")
    value: Any = event
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]", param):
        if index == "...":  # some value of a mapping: msgspec does not say which
            break
        value = value[int(index)] if index else value.get(key)
    return RequestError(f"{param}: {message}, got {_show(value)}", param=param)


def _show(value: Any) -> str:
    """The value as JSON, cut where it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else f"{text[:77]}..."
