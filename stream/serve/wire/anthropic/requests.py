"""The body of a request to Anthropic's Messages API, checked.

A field that changes no output is accepted; one that this server cannot honour is refused by name and value. Of blocks
and tools unknown fields are not read, `cache_control` among them. Edits of the context are not applied, and the answer
says so.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from tokenweir.stream.events.sampling import Sampling
from tokenweir.stream.serve.wire.anthropic.blocks import Message, TextBlock, check_blocks
from tokenweir.stream.serve.wire.anthropic.history import MessageHistory, read_history
from tokenweir.stream.serve.wire.checking import check_length, convert, count_items, offered_fields, refuse_template
from tokenweir.stream.serve.wire.errors import RequestError
from tokenweir.stream.serve.wire.requests import Stop, effort_kwargs

VERSIONS = ("2023-06-01", "2026-10-21")
"""Values of the header `anthropic-version`. The later version takes no sampling parameters; here they stay extensions."""

F = TypeVar("F", bound="MessageFields")

ToolChoice = str | dict[str, Any]


class Tool(Struct, frozen=True):
    """A tool; one with a `type` of its own is Anthropic's, which only Anthropic's models and servers know."""

    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    type: str | None = None

    @property
    def is_function(self) -> bool:
        """Whether the request describes it, so that any model can be shown it."""
        return self.type in (None, "custom")


class ToolSelection(Struct, frozen=True, forbid_unknown_fields=True):
    """A choice of tools."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(Struct, frozen=True):
    """Settings of thinking; `budget_tokens` is not read, since only `max_tokens` bounds an answer."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    display: Literal["summarized", "omitted"] | None = None


class OutputFormat(Struct, frozen=True, rename={"json_schema": "schema"}):
    """Requested format of the answer."""

    type: Literal["json_schema"]
    json_schema: dict[str, Any]


class OutputConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Effort and format of the answer."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class MessageFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/messages/count_tokens`: the fields that make the prompt."""

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
        """Return the messages for a template, and the omitted paths; raises as `read_history` and `check_length`."""
        history = read_history(
            self.system, self.messages, later_system=later_system, keep_billing_header=keep_billing_header
        )
        check_length(history.messages, max_items)
        history.left_out.extend(f"tools[{place}]" for place, tool in enumerate(self.tools) if not tool.is_function)
        return history

    def definitions(self) -> list[dict[str, Any]] | None:
        """Return the tools as chat templates take them; None without tools."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.input_schema or {"type": "object", "properties": {}},
                },
            }
            for tool in self.tools
            if tool.is_function
        ] or None

    @property
    def choice(self) -> ToolChoice | None:
        """Return the choice of tools, as `resolve_tool_choice` takes it."""
        if self.tool_choice is None:
            return None
        if self.tool_choice.type == "tool":
            return {"type": "function", "name": self.tool_choice.name}
        return "required" if self.tool_choice.type == "any" else self.tool_choice.type

    @property
    def parallel_tool_calls(self) -> bool | None:
        """Whether the answer may have several calls; None leaves it to the model."""
        return False if self.tool_choice is not None and self.tool_choice.disable_parallel_tool_use else None

    def template_kwargs(self, history: MessageHistory) -> dict[str, Any]:
        """Return variables for the template: the effort of thinking, and whether the answer continues the last message."""
        kind = None if self.thinking is None else self.thinking.type
        variables = effort_kwargs("none" if kind == "disabled" else self.output_config.effort)
        if kind == "enabled":
            variables |= {"enable_thinking": True, "thinking": True}
        if history.continues:
            variables |= {"continue_final_message": True, "add_generation_prompt": False}
        return variables | self.chat_template_kwargs

    def sampling(self) -> Sampling:
        """The engine's parameters."""
        form = self.output_config.format
        return Sampling(json_schema=None if form is None else form.json_schema)


class MessageCreate(MessageFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of `POST /v1/messages`."""

    max_tokens: Annotated[int, Meta(ge=1)]
    stream: bool = False
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=0)] | None = None
    stop_sequences: Annotated[list[Stop], Meta(max_length=16)] = []

    def sampling(self) -> Sampling:
        """The engine's parameters. `max_tokens` is not among them: clients send more than a context may have left."""
        form = self.output_config.format
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=self.top_k or None,
            stop=tuple(self.stop_sequences),
            json_schema=None if form is None else form.json_schema,
        )

    @property
    def omits_thinking(self) -> bool:
        """Whether the answer has the signatures of its thinking only."""
        return self.thinking is not None and self.thinking.display == "omitted"


# Fields that this server does not offer, with the values that ask for nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {"mcp_servers": ([],), "speed": ("standard",)}

# Fields that change no output.
_IGNORED = frozenset(
    {"betas", "cache_control", "diagnostics", "metadata", "service_tier", "user_profile_id", "workspace_id"}
)


def check_version(version: str | None) -> None:
    """Raise `RequestError` for another version of the protocol."""
    if version is not None and version not in VERSIONS:
        raise RequestError(
            f"anthropic-version is {version[:80]!r}; this server speaks {' and '.join(VERSIONS)}",
            code="unsupported_version",
            param="anthropic-version",
        )


def parse_message(body: dict[str, Any], *, max_items: int = 2048) -> MessageCreate:
    """Return the body of `POST /v1/messages`, checked; raise `RequestError` for an invalid field."""
    return _parsed(body, MessageCreate, max_items)


def parse_count(body: dict[str, Any], *, max_items: int = 2048) -> MessageFields:
    """The body of `POST /v1/messages/count_tokens`, checked; raises as `parse_message`."""
    return _parsed(body, MessageFields, max_items)


def _parsed(body: dict[str, Any], struct: type[F], max_items: int) -> F:
    count_items(body, ("messages", "tools", "system"), max_items)
    check_blocks(body)
    request = convert(offered_fields(body, struct, ignored=_IGNORED, neutral=_NEUTRAL), struct)
    refuse_template(request.chat_template_kwargs)
    return request
