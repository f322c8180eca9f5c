"""The body of OpenAI's Chat Completions, checked. No I/O; `chat_answers.py` has the answers.

A field that changes no output is accepted; one that this server cannot honour raises an error with its name and value, so that no
setting is silently ignored. `null` means unset. Besides OpenAI's fields, those that vLLM and other servers
have for sampling are known under the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from tokenweir.stream.decode.options import OutputOptions
from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.openai.chat_messages import CONTINUED_MARKS, chat_messages
from tokenweir.stream.serve.wire.shared.checking import (
    LONG,
    convert,
    count_items,
    offered_fields,
    parse_object,
    refuse_template,
)
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.fields import StopString, ThinkingBudget, effort_kwargs, sampling_of
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.message_builder import ChatMessage
from tokenweir.stream.serve.wire.shared.prompt_end import Continued, prompt_end_kwargs
from tokenweir.stream.serve.wire.shared.tool_names import function_definition
from tokenweir.templates.messages import Messages

_ID = re.compile("[0-9]{1,10}")
Penalty = Annotated[float, Meta(ge=-2, le=2)]
MOST_BIASES = 1024
"""Entries of `logit_bias`: as many as vLLM's sampler has room for. One for each token of a vocabulary would keep the event
loop for a tenth of a second."""


UNREAD = msgspec.Raw(b'[{"role":"user","content":""}]')
"""Messages in place of those that are not read."""


class StreamOptions(Struct, frozen=True):
    """The field `stream_options` of a request: whether a last chunk with the usage is sent.

    `include_obfuscation` is accepted and has no effect.
    """

    include_usage: bool = False
    include_obfuscation: bool = False


class SamplingFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields that the bodies of Chat Completions and Completions share.

    Names and meanings are those of OpenAI and of vLLM.
    """

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
    logit_bias: Annotated[dict[str, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=MOST_BIASES)] = {}
    seed: int | None = None
    stop: StopString | Annotated[list[StopString], Meta(max_length=16)] | None = None
    stop_token_ids: Annotated[list[int], Meta(max_length=64)] = []
    min_tokens: Annotated[int, Meta(ge=0)] = 0
    ignore_eos: bool = False
    include_stop_str_in_output: bool = False
    skip_special_tokens: bool = True
    return_token_ids: bool = False
    user: str | None = None

    def common_sampling(self, max_tokens: int | None, schema: dict[str, Any] | None = None) -> Sampling:
        """Return the sampling parameters for the engine.

        Args:
            max_tokens: Most tokens of an answer; None sets no limit.
            schema: JSON schema that the answer must match; None allows any text.

        Raises:
            RequestError: A key of `logit_bias` is not a token id.

        """
        bad = next((key for key in self.logit_bias if not _ID.fullmatch(key)), None)
        if bad is not None:
            raise RequestError(f"logit_bias: {bad[:40]!r} is no token id", param="logit_bias")
        return sampling_of(
            self,
            self.stop,
            max_tokens=max_tokens,
            stop_token_ids=tuple(self.stop_token_ids),
            logit_bias={int(key): value for key, value in self.logit_bias.items()},
            json_schema=schema,
        )

    def decoding(self) -> OutputOptions:
        """Return the decoder's options: whether it keeps stop strings in the text, and whether it drops special tokens."""
        return {"include_stop": self.include_stop_str_in_output, "skip_special_tokens": self.skip_special_tokens}


def thinking_budget(tokens: int | None) -> OutputOptions:
    """Return the decoder's option for a budget of `tokens` tokens of thinking; no option for None."""
    return {} if tokens is None else {"thinking_budget": tokens}


class JsonSchema(Struct, frozen=True, rename={"json_schema": "schema"}):
    """The field `response_format.json_schema` of a request: a JSON schema with a name.

    Attributes:
        name: The schema's name; without effect.
        description: A description of the schema; without effect.
        json_schema: The schema, which is the field `schema` of the request.
        strict: Without effect: the schema is requested of the engine in any case.

    """

    name: str = ""
    description: str | None = None
    json_schema: dict[str, Any] = {}
    strict: bool | None = None


class ResponseFormat(Struct, frozen=True):
    """The field `response_format` of a request: plain text, any JSON object, or JSON that matches a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON schema that the answer must match, or None for the type `text`.

        It is `{"type": "object"}` if the request has no `json_schema`.
        """
        if self.type == "text":
            return None
        return {"type": "object"} if self.json_schema is None else self.json_schema.json_schema


class ChatTool(CacheMarks, frozen=True, forbid_unknown_fields=True):
    """A function that the model may call."""

    function: ToolFunction
    type: Literal["function"]


class ToolFunction(CacheMarks, frozen=True, forbid_unknown_fields=True):
    """Definition of a function that the model may call; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionName(Struct, frozen=True, forbid_unknown_fields=True):
    """Reference to a function by its name."""

    name: str


class NamedTool(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """Value of `tool_choice` that makes the model call this one function."""

    function: FunctionName


class AllowedFunctions(Struct, frozen=True, forbid_unknown_fields=True):
    """Some of the tools, and whether the model has to call one of them."""

    mode: Literal["auto", "required"]
    tools: list[dict[str, Any]]


class AllowedTools(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="allowed_tools"):
    """Value of `tool_choice` that restricts the model to some of the tools."""

    allowed_tools: AllowedFunctions


class ChatRequest(SamplingFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/chat/completions`.

    Attributes:
        tool_choice: `any` is Mistral's word for `required`.
        enable_thinking: The variable of chat templates, where clients of DashScope and SiliconFlow set it.

    """

    messages: Annotated[list[Any], Meta(min_length=1)]
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    logprobs: bool = False
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] = 0
    tools: list[ChatTool] = []
    tool_choice: Literal["auto", "none", "required", "any"] | NamedTool | AllowedTools | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, Any] = {}
    add_generation_prompt: bool | None = None
    continue_final_message: Continued = False
    thinking_token_budget: ThinkingBudget | None = None

    def decoding(self) -> OutputOptions:
        """Return the decoder's options: those of `SamplingFields`, and the budget of thinking."""
        return super().decoding() | thinking_budget(self.thinking_token_budget)

    @property
    def limit(self) -> tuple[str, int | None]:
        """The limit on the answer's tokens, as the name of the field that sets it and its value.

        `max_completion_tokens` takes precedence over `max_tokens`. The value is None if neither is set.
        """
        if self.max_completion_tokens is not None:
            return "max_completion_tokens", self.max_completion_tokens
        return "max_tokens", self.max_tokens

    def sampling(self) -> Sampling:
        """Return the sampling parameters for the engine, with the request's limit and JSON schema.

        Raises `RequestError` as `common_sampling`.
        """
        schema = self.response_format.schema() if self.response_format else None
        return replace(self.common_sampling(self.limit[1], schema), top_logprobs=self.top_logprobs)

    def conversation(self) -> Sequence[ChatMessage]:
        """Return the request's messages, converted for a chat template; raise `RequestError` for an invalid one."""
        return self.messages if isinstance(self.messages, Messages) else chat_messages(self.messages)

    def definitions(self) -> list[dict[str, Any]] | None:
        """Return the tools in the form that chat templates take, one dict a tool; None without tools."""
        functions = (tool.function for tool in self.tools)
        return [function_definition(each.name, each.description, each.parameters) for each in functions] or None

    @property
    def choice(self) -> str | dict[str, Any] | None:
        """The request's `tool_choice` in OpenAI's form, for `resolve_tool_choice`: `any` becomes `required`.

        None if the request has no choice.
        """
        if isinstance(self.tool_choice, str):
            return "required" if self.tool_choice == "any" else self.tool_choice
        made: dict[str, Any] | None = to_builtins(self.tool_choice)
        return made

    def template_kwargs(self) -> dict[str, Any]:
        """Return the request's variables for the chat template.

        They are those for `reasoning_effort`, for `enable_thinking` and for the end of the prompt, overridden by
        `chat_template_kwargs`. Raises `RequestError` as `prompt_end_kwargs`.
        """
        variables = effort_kwargs(self.reasoning_effort)
        if self.enable_thinking is not None:
            variables |= {"enable_thinking": self.enable_thinking, "thinking": self.enable_thinking}
        end = prompt_end_kwargs(self.add_generation_prompt, self._continued)
        return variables | end | self.chat_template_kwargs

    @property
    def _continued(self) -> Continued:
        """The part of the last message that the answer continues, by the request's field or by a mark of that message.

        A marked message without content has its thinking continued.
        """
        if self.continue_final_message or isinstance(self.messages, Messages):
            return self.continue_final_message
        last = self.messages[-1]
        if not any(last.get(mark) for mark in CONTINUED_MARKS):
            return False
        return True if last.get("content") or not last.get("reasoning_content") else "reasoning_content"


# Fields that this server does not offer, with the values that ask for nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "echo": (False,),
    "modalities": (["text"],),
    "suffix": ("",),
    "top_logprobs": (0,),
}
# Fields that change no output.
IGNORED = frozenset(
    {
        "metadata",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "verbosity",
    }
)


def parse_body(body: dict[str, Any], struct: type[Any], *, max_items: int, counted: Iterable[str]) -> Any:
    """Check a request's body and convert it to a struct.

    Args:
        body: The decoded JSON object.
        struct: The `msgspec` struct of the result.
        max_items: Most items in each of the fields `counted`, content parts and tool calls included.
        counted: Names of the body's fields whose items are counted.

    Raises:
        RequestError: A field is unknown, invalid or too long. The error has its name and, where it helps, its value.

    """
    count_items(body, counted, max_items)
    kept = offered_fields(body, struct, ignored=IGNORED, neutral=NEUTRAL)
    return convert(kept, struct)


def parse_chat_json(data: bytes, *, max_items: int = 2048) -> ChatRequest:
    """Parse and check the JSON body of `POST /v1/chat/completions`; raise `RequestError` for an invalid one.

    `max_items` is as for `parse_chat`.
    """
    body, messages = read_chat_json(data, max_items=max_items)
    return parse_chat(body, messages, max_items=max_items)


def read_chat_json(data: bytes, *, max_items: int = 2048) -> tuple[dict[str, Any], Messages | None]:
    """Parse the JSON body of `POST /v1/chat/completions`, unchecked, as arguments for `parse_chat`.

    Returns:
        The body, and its messages or None. For a long body whose messages are plain (text, tool calls and their
        results) and at most `max_items`, the messages come as `Messages`, which need no Python object for each value,
        and the body has a placeholder in their place. Otherwise the body has its own messages, and the second value is
        None.

    """
    if len(data) < LONG or (read := _read_messages(data, max_items)) is None:
        return parse_object(data), None
    rest, messages = read
    try:
        return parse_object(rest), messages
    except RequestError:
        return parse_object(data), None  # raises an error with the place in the body


def _read_messages(data: bytes, max_items: int) -> tuple[bytes, Messages] | None:
    """Split the messages off a JSON body.

    Returns:
        The body as JSON with one empty message in place of its messages, and the messages. None selects the slow path: the
        JSON is invalid or has no messages, they are more than `max_items`, or they have more than text, tool calls and
        their results.

    """
    try:
        fields = _fields.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if (given := fields.get("messages")) is None or (
        messages := Messages.from_chat_json(bytes(given), max_items)
    ) is None:
        return None
    fields["messages"] = UNREAD
    return msgspec.json.encode(fields), messages


_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


def parse_chat(body: dict[str, Any], messages: Messages | None = None, *, max_items: int = 2048) -> ChatRequest:
    """Check a decoded body of `POST /v1/chat/completions`.

    Args:
        body: The decoded JSON object.
        messages: Messages in place of those in the body, as `read_chat_json` returns them; None uses the body's.
        max_items: Most messages, and most tools, content parts and tool calls included.

    Raises:
        RequestError: A field is invalid, as for `parse_body`; the template variables have a template; or `top_logprobs`
            is set without `logprobs`.

    """
    request: ChatRequest = parse_body(body, ChatRequest, max_items=max_items, counted=("messages", "tools"))
    refuse_template(request.chat_template_kwargs)
    if request.top_logprobs and not request.logprobs:
        raise RequestError("top_logprobs wants logprobs to be true", param="top_logprobs")
    return request if messages is None else replace(request, messages=messages)
