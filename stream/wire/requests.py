"""The client's side of the OpenAI Responses protocol: one JSON message in, one checked request out.

Two client events are known: `response.create` and, an extension named as in OpenAI's Realtime protocol,
`response.cancel`. A field that this server does not offer is refused by name and value, unless its value asks for
nothing (`tools: []`, `store: false`), so that nobody believes in a setting that has no effect. `null` means unset.

Extensions to `response.create`, named as in the Chat Completions of other servers: `stop`, `top_k`, `seed`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from tokenweir.encode.errors import ProtocolError
from tokenweir.stream.engines.protocol import Sampling

ChatMessage = dict[str, str]
"""A message for a chat template: `role`, `content`, and for the assistant perhaps `reasoning_content`."""

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
        stop: Extension: strings that end the answer.
        top_k: Extension: most candidates.
        seed: Extension: for a repeatable answer.

    """

    type: Literal["response.create"]
    model: str | None = None
    input: str | list[_Message | _Reasoning] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    reasoning: Reasoning | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    stop: Stop | Annotated[list[Stop], Meta(max_length=16)] | None = None
    top_k: Annotated[int, Meta(ge=1)] | None = None
    seed: int | None = None

    def messages(self) -> list[ChatMessage]:
        """The input as messages for a chat template, without `instructions`.

        `developer` becomes `system`, which is the role that templates know. A reasoning item becomes the
        `reasoning_content` of the assistant's message after it, or of an empty one.
        """
        if self.input is None or isinstance(self.input, str):
            return [] if self.input is None else [{"role": "user", "content": self.input}]
        messages: list[ChatMessage] = []
        thinking = ""
        for item in self.input:
            if isinstance(item, _Reasoning):
                thinking += "".join(part.text for part in item.content)
                continue
            if thinking and item.role != "assistant":
                messages.append({"role": "assistant", "content": "", "reasoning_content": thinking})
                thinking = ""
            text = item.content if isinstance(item.content, str) else "".join(part.text for part in item.content)
            message = {"role": "system" if item.role == "developer" else item.role, "content": text}
            if thinking:
                message["reasoning_content"] = thinking
                thinking = ""
            messages.append(message)
        if thinking:
            messages.append({"role": "assistant", "content": "", "reasoning_content": thinking})
        return messages

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


class ResponseCancel(Struct, frozen=True, forbid_unknown_fields=True):
    """The event `response.cancel`: stop generating; `response_id` guards against stopping the next response."""

    type: Literal["response.cancel"]
    response_id: str | None = None


ClientEvent = ResponseCreate | ResponseCancel

_EVENTS: dict[str, type[ResponseCreate | ResponseCancel]] = {
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
}

# Fields of the protocol that this server does not offer, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "background": (False,),
    "generate": (True,),
    "include": ([],),
    "parallel_tool_calls": (False, True),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "stream": (True,),
    "text": ({}, {"format": {"type": "text"}}),
    "tool_choice": ("auto", "none"),
    "tools": ([],),
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
        return msgspec.convert(event, struct)
    except msgspec.ValidationError as error:
        raise _located(error, event) from error


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
