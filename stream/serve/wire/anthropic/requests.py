"""The body of a request to Anthropic's Messages API, checked.

A field that changes no output is accepted; one that this server cannot honour raises an error with its name and value. Of blocks
and tools unknown fields are not read, `cache_control` among them. Edits of the context are not applied, and the answer
says so.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.anthropic.blocks import Message, TextBlock, check_blocks
from tokenweir.stream.serve.wire.anthropic.history import MessageHistory, read_history
from tokenweir.stream.serve.wire.shared.checking import (
    check_length,
    convert,
    count_items,
    offered_fields,
    refuse_template,
)
from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.fields import StopString, ThinkingBudget, effort_kwargs, sampling_of
from tokenweir.stream.serve.wire.shared.prompt_end import prompt_end_kwargs
from tokenweir.stream.serve.wire.shared.tool_names import function_definition

VERSIONS = ("2023-06-01", "2026-10-21")
"""Values of the header `anthropic-version`. The later version takes no sampling parameters; here they stay extensions."""

F = TypeVar("F", bound="MessageFields")

ToolChoice = str | dict[str, Any]


class Tool(Struct, frozen=True):
    """A tool of a request. One with a `type` other than `custom` is Anthropic's own, and is not shown to the model."""

    name: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    type: str | None = None

    def __post_init__(self) -> None:
        if self.is_function and self.name is None:
            raise ValueError("Object missing required field `name`")

    @property
    def is_function(self) -> bool:
        """Whether the request itself defines the tool, so that any model can be shown it."""
        return self.type in (None, "custom")


class ToolSelection(Struct, frozen=True, forbid_unknown_fields=True):
    """The field `tool_choice` of a request."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(Struct, frozen=True):
    """The field `thinking` of a request; `budget_tokens` bounds the thinking of the answer."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: ThinkingBudget | None = None
    display: Literal["summarized", "omitted"] | None = None


class OutputFormat(Struct, frozen=True, rename={"json_schema": "schema"}):
    """JSON schema that the answer must match."""

    type: Literal["json_schema"]
    json_schema: dict[str, Any]


class OutputConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """The field `output_config` of a request: how much to think, and the answer's format."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class MessageFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/messages/count_tokens`: the fields that determine the prompt."""

    model: str | None = None
    messages: Annotated[list[Message], Meta(min_length=1)]
    system: str | list[TextBlock] | None = None
    tools: list[Tool] = []
    tool_choice: ToolSelection | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig = OutputConfig()
    context_management: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] = {}

    def history(self, *, later_system: bool, keep_billing_header: bool, max_items: int) -> MessageHistory:
        """Return the messages for a chat template, and the paths of the request's parts that they omit.

        `max_items` is the most messages; the other arguments are those of `read_history`. Raises `RequestError` as
        `read_history` and `check_length`.
        """
        history = read_history(
            self.system, self.messages, later_system=later_system, keep_billing_header=keep_billing_header
        )
        check_length(history.messages, max_items)
        history.left_out.extend(f"tools[{place}]" for place, tool in enumerate(self.tools) if not tool.is_function)
        return history

    def definitions(self) -> list[dict[str, Any]] | None:
        """Return the function tools in the form that chat templates take, one dict a tool; None without any."""
        functions = (tool for tool in self.tools if tool.is_function)
        return [function_definition(tool.name, tool.description, tool.input_schema) for tool in functions] or None

    @property
    def choice(self) -> ToolChoice | None:
        """The request's `tool_choice` in OpenAI's form, for `resolve_tool_choice`.

        `"auto"`, `"none"`, `"required"`, or a dict that names one function; None if the request has no choice.
        """
        if self.tool_choice is None:
            return None
        if self.tool_choice.type == "tool":
            return {"type": "function", "name": self.tool_choice.name}
        return "required" if self.tool_choice.type == "any" else self.tool_choice.type

    @property
    def parallel_tool_calls(self) -> bool | None:
        """False if the answer may have only one tool call; None leaves it to the model."""
        return False if self.tool_choice is not None and self.tool_choice.disable_parallel_tool_use else None

    def template_kwargs(self, history: MessageHistory) -> dict[str, Any]:
        """Return the variables for the chat template.

        They express the effort of thinking and whether the answer continues the last message of `history`. The
        request's own `chat_template_kwargs` override them.
        """
        kind = None if self.thinking is None else self.thinking.type
        variables = effort_kwargs("none" if kind == "disabled" else self.output_config.effort)
        if kind == "enabled":
            variables |= {"enable_thinking": True, "thinking": True}
        if history.continues:
            variables |= prompt_end_kwargs(None, True)
        return variables | self.chat_template_kwargs

    def sampling(self) -> Sampling:
        """Return the sampling parameters for the engine, without `max_tokens`.

        Clients send a `max_tokens` that may exceed the rest of the context, so the server sets the limit elsewhere.
        """
        form = self.output_config.format
        return sampling_of(self, json_schema=None if form is None else form.json_schema)


class MessageCreate(MessageFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/messages`."""

    max_tokens: Annotated[int, Meta(ge=1)]
    stream: bool = False
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    stop_sequences: Annotated[list[StopString], Meta(max_length=16)] = []

    def sampling(self) -> Sampling:
        return replace(super().sampling(), stop=tuple(self.stop_sequences))

    @property
    def omits_thinking(self) -> bool:
        """Whether the answer has the signatures of its thinking without its text."""
        return self.thinking is not None and self.thinking.display == "omitted"


# Fields that this server does not offer, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {"mcp_servers": ([],), "speed": ("standard",)}

# Fields that change no output.
_IGNORED = frozenset(
    {"betas", "diagnostics", "metadata", "prediction", "service_tier", "user_profile_id", "workspace_id"}
)


def check_version(version: str | None) -> None:
    """Raise `RequestError` if the header `anthropic-version` is set to an unsupported version; None is accepted."""
    if version is not None and version not in VERSIONS:
        raise RequestError(
            f"anthropic-version is {version[:80]!r}; this server speaks {' and '.join(VERSIONS)}",
            code="unsupported_version",
            param="anthropic-version",
        )


def parse_message(body: dict[str, Any], *, max_items: int = 2048) -> MessageCreate:
    """Check a decoded body of `POST /v1/messages` and convert it to a struct.

    Args:
        body: The decoded JSON object.
        max_items: Most items of each of `messages`, `tools` and `system`, content blocks inside the items included.

    Raises:
        RequestError: A field is invalid or not supported, or a list is too long. Fields that change no output, such
            as `metadata`, are ignored.

    """
    return _parsed(body, MessageCreate, max_items)


def parse_count(body: dict[str, Any], *, max_items: int = 2048) -> MessageFields:
    """Check a decoded body of `POST /v1/messages/count_tokens` and convert it to a struct.

    Raises `RequestError` as `parse_message`.
    """
    return _parsed(body, MessageFields, max_items)


def _parsed(body: dict[str, Any], struct: type[F], max_items: int) -> F:
    count_items(body, ("messages", "tools", "system"), max_items)
    _refuse_thread(body)
    check_blocks(body)
    request = convert(offered_fields(body, struct, ignored=_IGNORED, neutral=_NEUTRAL), struct)
    refuse_template(request.chat_template_kwargs)
    return request


def _refuse_thread(body: dict[str, Any]) -> None:
    """Raise `RequestError` if the server is to keep the conversation.

    The SDK's tool runners ask for that first. By this code they know that they have to send whole conversations.
    """
    if body.get("thread") is not None:
        raise RequestError(
            "thread: this server keeps no conversations of messages; send the whole conversation without it",
            code="thread_unsupported_request",
            param="thread",
        )
