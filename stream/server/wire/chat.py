"""OpenAI's Chat Completions: one JSON body in, checked; chunks or one completion out. No I/O.

A field that changes no output is accepted; one that this server cannot honour is refused by name and value, so that
nobody believes in a setting without effect. `null` means unset. Besides OpenAI's fields, those that vLLM and other servers
have for sampling are known under the same names. Thinking is `reasoning_content`, as llama.cpp and SGLang call it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from tokenweir.stream.engines.protocol import Sampling
from tokenweir.stream.events import Alignment, Delta, Finish, FinishReason, ReasoningDelta, TextDelta, Usage
from tokenweir.stream.server.wire.chat_messages import chat_messages
from tokenweir.stream.server.wire.errors import RequestError
from tokenweir.stream.server.wire.events import FunctionTool, Logprob
from tokenweir.stream.server.wire.items import new_call_id, new_id, token_logprobs
from tokenweir.stream.server.wire.messages import ChatMessage
from tokenweir.stream.server.wire.requests import (
    Stop,
    check_tools,
    count_items,
    effort_kwargs,
    located,
    offered_fields,
    parse_object,
)

Penalty = Annotated[float, Meta(ge=-2, le=2)]


class StreamOptions(Struct, frozen=True):
    """What a stream has besides the answer."""

    include_usage: bool = False
    include_obfuscation: bool = False


class SamplingFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What Chat Completions and Completions have in common; names and meanings are those of OpenAI and of vLLM."""

    model: str | None = None
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    n: Annotated[int, Meta(ge=1)] = 1
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Penalty | None = None
    presence_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Meta(gt=0)] | None = None
    logit_bias: dict[str, Annotated[float, Meta(ge=-100, le=100)]] = {}
    seed: int | None = None
    stop: Stop | Annotated[list[Stop], Meta(max_length=16)] | None = None
    stop_token_ids: Annotated[list[int], Meta(max_length=64)] = []
    min_tokens: Annotated[int, Meta(ge=0)] = 0
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    return_token_ids: bool = False
    user: str | None = None

    def common_sampling(self, max_tokens: int | None, schema: dict[str, Any] | None = None) -> Sampling:
        """The engine's parameters.

        Raises:
            RequestError: A key of `logit_bias` is no id.

        """
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        bad = next((key for key in self.logit_bias if not (key.isascii() and key.isdigit())), None)
        if bad is not None:
            raise RequestError(f"logit_bias: {bad[:40]!r} is no token id", param="logit_bias")
        return Sampling(
            max_tokens=max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=None if self.top_k in (-1, 0) else self.top_k,
            seed=self.seed,
            stop=stop,
            stop_token_ids=tuple(self.stop_token_ids),
            min_tokens=self.min_tokens,
            ignore_eos=self.ignore_eos,
            n=self.n,
            min_p=self.min_p or None,
            frequency_penalty=self.frequency_penalty or None,
            presence_penalty=self.presence_penalty or None,
            repetition_penalty=None if self.repetition_penalty == 1 else self.repetition_penalty,
            logit_bias={int(key): value for key, value in self.logit_bias.items()},
            json_schema=schema,
        )

    def decoding(self) -> dict[str, Any]:
        """Options of the decoder."""
        return {"include_stop": self.include_stop_str_in_output, "skip_special_tokens": self.skip_special_tokens}


class JsonSchema(Struct, frozen=True, rename={"json_schema": "schema"}):
    """A named JSON schema."""

    name: str = ""
    description: str | None = None
    json_schema: dict[str, Any] = {}
    strict: bool | None = None


class ResponseFormat(Struct, frozen=True):
    """What an answer is to look like."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that it is to fit."""
        if self.type == "text":
            return None
        return {"type": "object"} if self.json_schema is None else self.json_schema.json_schema


class ChatTool(Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    function: ToolFunction
    type: Literal["function"]


class ToolFunction(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool is; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatRequest(SamplingFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/chat/completions`."""

    messages: list[Any]
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    logprobs: bool = False
    tools: list[ChatTool] = []
    tool_choice: Literal["auto", "none"] | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    chat_template_kwargs: dict[str, Any] = {}

    @property
    def limit(self) -> tuple[str, int | None]:
        """The most tokens that are asked for, and the field that says so."""
        if self.max_completion_tokens is not None:
            return "max_completion_tokens", self.max_completion_tokens
        return "max_tokens", self.max_tokens

    def sampling(self) -> Sampling:
        """The engine's parameters; raises as `common_sampling`."""
        return self.common_sampling(self.limit[1], self.response_format.schema() if self.response_format else None)

    def conversation(self) -> list[ChatMessage]:
        """The messages for a template; raises as `chat_messages`."""
        return chat_messages(self.messages)

    def definitions(self) -> list[dict[str, Any]] | None:
        """The tools as chat templates take them; None if the model is to call none."""
        if not self.tools or self.tool_choice == "none":
            return None
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.function.name,
                    "description": tool.function.description or "",
                    "parameters": tool.function.parameters or {"type": "object", "properties": {}},
                },
            }
            for tool in self.tools
        ]

    def template_kwargs(self) -> dict[str, Any]:
        """Variables for the template."""
        return effort_kwargs(self.reasoning_effort) | self.chat_template_kwargs


# Fields that this server does not offer, with the values that ask for nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add_generation_prompt": (True,),
    "best_of": (1,),
    "continue_final_message": (False,),
    "echo": (False,),
    "modalities": (["text"],),
    "suffix": ("",),
    "top_logprobs": (0,),
}
# Fields that change no output.
IGNORED = frozenset(
    {
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "verbosity",
    }
)


def parse_body(data: bytes, struct: type[Any], *, max_items: int, counted: Iterable[str]) -> Any:
    """A request's body as the struct, checked.

    Raises:
        RequestError: Names the field at fault, and its value.

    """
    body = parse_object(data)
    count_items(body, counted, max_items)
    kept = offered_fields(body, struct, ignored=IGNORED, neutral=NEUTRAL)
    try:
        return msgspec.convert(kept, struct)
    except msgspec.ValidationError as error:
        raise located(error, kept) from error


def parse_chat(data: bytes, *, max_items: int = 2048) -> ChatRequest:
    """The body of `POST /v1/chat/completions`, checked; raises as `parse_body`."""
    request: ChatRequest = parse_body(data, ChatRequest, max_items=max_items, counted=("messages", "tools"))
    if "chat_template" in request.chat_template_kwargs:
        raise RequestError(
            "chat_template_kwargs.chat_template: a template is never taken from a request",
            code="unsupported_parameter",
            param="chat_template_kwargs.chat_template",
        )
    functions = [FunctionTool(tool.function.name, strict=tool.function.strict) for tool in request.tools]
    if functions:
        check_tools(functions, request.parallel_tool_calls)
    return request


# -- what goes out -----------------------------------------------------------------------------------------------------


class CompletionTokensDetails(Struct, frozen=True):
    """How many of the tokens were thinking."""

    reasoning_tokens: int


class ChatUsage(Struct, frozen=True):
    """Token counts of all answers to a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: CompletionTokensDetails


def usage_of(usages: Iterable[Usage]) -> ChatUsage:
    """The counts of several answers to one prompt."""
    given = list(usages)
    prompt = max((usage.prompt_tokens for usage in given), default=0)
    completion = sum(usage.completion_tokens for usage in given)
    reasoning = sum(usage.reasoning_tokens for usage in given)
    return ChatUsage(prompt, completion, prompt + completion, CompletionTokensDetails(reasoning))


FINISH_REASONS = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_CALLS: "tool_calls",
    FinishReason.CANCELLED: "stop",
}


class Logprobs(Struct, frozen=True):
    """The answer's tokens with their logarithms."""

    content: list[Logprob]


class CallFunction(Struct, frozen=True, omit_defaults=True):
    """A piece of a call: the name first, then arguments."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(Struct, frozen=True, omit_defaults=True):
    """A piece of a call; id and type come with the name."""

    function: CallFunction
    index: int | None = None
    id: str | None = None
    type: str | None = None


class ChatDelta(Struct, frozen=True, omit_defaults=True):
    """What is new of an answer."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[CallDelta] | None = None


class ChunkChoice(Struct, frozen=True):
    """What is new of one of several answers."""

    index: int
    delta: ChatDelta
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class ChatChunk(Struct, frozen=True):
    """A piece of the stream."""

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    object: str = "chat.completion.chunk"


class UsageChunk(Struct, frozen=True):
    """The last piece of the stream, if it was asked for."""

    id: str
    created: int
    model: str
    usage: ChatUsage
    choices: list[ChunkChoice] = []
    object: str = "chat.completion.chunk"


_encoder = msgspec.json.Encoder()


def sse(value: Any) -> bytes:
    """A server-sent event."""
    return b"data: " + _encoder.encode(value) + b"\n\n"


class ChatAnswer:
    """One request's answers: as chunks while their deltas come, or as one completion after them.

    Args:
        model: The model's name.
        choices: How many answers there will be.
        logprobs: Whether chunks have the tokens' logarithms.

    Attributes:
        id: The completion's id.

    """

    def __init__(self, model: str, *, choices: int = 1, logprobs: bool = False) -> None:
        self.id = new_id("chatcmpl")
        self._model = model
        self._created = int(time.time())
        self._logprobs = logprobs
        self._choices = [_Choice(index) for index in range(choices)]

    def start(self) -> list[bytes]:
        """The chunks that open the answers."""
        role = ChatDelta(role="assistant", content="")
        return [self._chunk(ChunkChoice(index, role)) for index in range(len(self._choices))]

    def chunks(self, deltas: Iterable[Delta]) -> list[bytes]:
        """The chunks of deltas.

        Raises:
            RequestError: Logprobs were asked for, and the engine gives none.

        """
        return [self._chunk(choice) for delta in deltas if (choice := self._step(delta)) is not None]

    def usage_chunk(self) -> bytes:
        """The chunk with the usage."""
        return sse(UsageChunk(self.id, self._created, self._model, self._usage()))

    def add(self, deltas: Iterable[Delta]) -> None:
        """Take deltas for `completion`; raises as `chunks`."""
        for delta in deltas:
            if (step := self._step(delta)) is not None:
                self._choices[delta.index].add(step)

    def completion(self) -> bytes:
        """All answers, as JSON."""
        return _encoder.encode(
            {
                "id": self.id,
                "object": "chat.completion",
                "created": self._created,
                "model": self._model,
                "choices": [choice.whole(self._logprobs) for choice in self._choices],
                "usage": self._usage(),
            }
        )

    def _usage(self) -> ChatUsage:
        return usage_of(choice.usage for choice in self._choices)

    def _chunk(self, choice: ChunkChoice) -> bytes:
        return sse(ChatChunk(self.id, self._created, self._model, [choice]))

    def _step(self, delta: Delta) -> ChunkChoice | None:
        index = delta.index
        choice = self._choices[index]
        if isinstance(delta, Finish):
            choice.usage = delta.usage
            reason = FINISH_REASONS.get(delta.reason)
            return None if reason is None else ChunkChoice(index, ChatDelta(), None, reason)
        logprobs = None
        if self._logprobs and isinstance(delta, TextDelta):
            logprobs = Logprobs(checked_logprobs(delta.alignment))
        if isinstance(delta, TextDelta):
            return ChunkChoice(index, ChatDelta(content=delta.text), logprobs)
        if isinstance(delta, ReasoningDelta):
            return ChunkChoice(index, ChatDelta(reasoning_content=delta.text))
        if delta.name:
            function = CallFunction(delta.name, delta.arguments)
            call = CallDelta(function, delta.call, new_call_id(), "function")
        elif delta.arguments:
            call = CallDelta(CallFunction(arguments=delta.arguments), delta.call)
        else:
            return None
        return ChunkChoice(index, ChatDelta(tool_calls=[call]))


def checked_logprobs(alignment: Alignment | None) -> list[Logprob]:
    """A delta's tokens with their logarithms.

    Raises:
        RequestError: The engine gives none.

    """
    if alignment is not None and None in alignment.logprobs:
        raise RequestError(
            "logprobs are asked for, and this model's engine gives none", code="unsupported_parameter", param="logprobs"
        )
    return token_logprobs(alignment)


class _Choice:
    """One answer that is being put together."""

    def __init__(self, index: int) -> None:
        self.usage = Usage()
        self._index = index
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, tuple[str, str, list[str]]] = {}
        self._logprobs: list[Logprob] = []
        self._reason = "stop"

    def add(self, step: ChunkChoice) -> None:
        delta = step.delta
        if step.finish_reason is not None:
            self._reason = step.finish_reason
        if step.logprobs is not None:
            self._logprobs += step.logprobs.content
        self._text.append(delta.content or "")
        self._reasoning.append(delta.reasoning_content or "")
        for call in delta.tool_calls or ():
            assert call.index is not None
            if call.id is not None:
                self._calls[call.index] = (call.id, call.function.name or "", [])
            self._calls[call.index][2].append(call.function.arguments or "")

    def whole(self, logprobs: bool) -> dict[str, Any]:
        calls = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": "".join(arguments)}}
            for call_id, name, arguments in self._calls.values()
        ]
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = calls
        return {
            "index": self._index,
            "message": message,
            "logprobs": Logprobs(self._logprobs) if logprobs else None,
            "finish_reason": self._reason,
        }
