"""Tools of the Responses protocol as functions for the model: functions, namespaces of functions, and custom tools.

The model sees one list of functions. A function of a namespace has both names there, joined; a custom tool, whose input is
a text, is a function with the one argument `input`. `ToolSet.find` maps the name in a call back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from tokenweir.stream.serve.wire.shared.errors import RequestError
from tokenweir.stream.serve.wire.shared.marks import CacheMarks
from tokenweir.stream.serve.wire.shared.tool_names import CUSTOM_INPUT, joined_name


class _ToolFields(CacheMarks, frozen=True, kw_only=True, rename={"asynchronous": "async"}):
    """Fields of tools that have no effect here.

    Attributes:
        allowed_callers: Who may call the tool. A program of the model's cannot, as this server runs none.
        asynchronous: Whether the client runs the tool in the background.
        defer_loading: Whether a search would have to find the tool first. The model sees it from the start.
        output_schema: The schema of a result.

    """

    allowed_callers: list[str] | None | UnsetType = UNSET
    asynchronous: bool | UnsetType = UNSET
    defer_loading: bool | UnsetType = UNSET
    output_schema: Any = UNSET


class FunctionTool(_ToolFields, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """A function that the model may call; `parameters` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    def definition(self) -> dict[str, Any]:
        """Return the description and the parameters in the form that chat templates take."""
        parameters = {"type": "object", "properties": {}} if self.parameters is None else self.parameters
        return {"description": self.description or "", "parameters": parameters}


class InputFormat(Struct, frozen=True, omit_defaults=True):
    """The format of a custom tool's input: any text, or text of a grammar. The model is shown the grammar; nothing enforces it."""

    type: Literal["text", "grammar"]
    syntax: Literal["lark", "regex"] | None = None
    definition: str = ""


class CustomTool(_ToolFields, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="custom"):
    """A tool whose input is a text, such as the `apply_patch` of Codex."""

    name: str
    description: str | None = None
    format: InputFormat | None = None

    def definition(self) -> dict[str, Any]:
        """Return the description, with the grammar of the input, and the parameters, which are the input alone."""
        texts = [self.description or ""]
        if self.format is not None and self.format.type == "grammar":
            texts.append(f"The input is text of this grammar ({self.format.syntax}):\n{self.format.definition}")
        properties = {CUSTOM_INPUT: {"type": "string"}}
        return {
            "description": "\n\n".join(filter(None, texts)),
            "parameters": {"type": "object", "properties": properties, "required": [CUSTOM_INPUT]},
        }


class NamespaceTool(CacheMarks, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="namespace"):
    """Functions and custom tools under a common name, such as those of an MCP server."""

    name: str
    tools: list[FunctionTool | CustomTool]
    description: str | None = None


class ServerTool(Struct, frozen=True, tag_field="type", tag="server"):
    """A tool that a server would have to run, such as a web search; this server runs none."""


ClientTool = FunctionTool | CustomTool | NamespaceTool
"""A tool that the client runs."""

CLIENT_TOOLS = ("function", "custom", "namespace")
"""The types of tools that the client runs."""


class NamedFunction(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="function"):
    """Value of `tool_choice` that makes the model call this one function."""

    name: str
    namespace: str | UnsetType = UNSET


class NamedCustom(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="custom"):
    """Value of `tool_choice` that makes the model call this one custom tool."""

    name: str
    namespace: str | UnsetType = UNSET


class AllowedTools(Struct, frozen=True, forbid_unknown_fields=True, tag_field="type", tag="allowed_tools"):
    """Value of `tool_choice` that restricts the model to some of the tools."""

    tools: list[dict[str, Any]]
    mode: Literal["auto", "none", "required"] = "auto"


Choice = Literal["auto", "none", "required"] | NamedFunction | NamedCustom | AllowedTools


class ShownTool(NamedTuple):
    """A function as the model sees it.

    Attributes:
        shown: The name that the model sees.
        tool: The tool that it stands for.
        namespace: The namespace of the tool; None if it has none.
        preface: Text before the description: name and description of the namespace, for its first function.

    """

    shown: str
    tool: FunctionTool | CustomTool
    namespace: str | None = None
    preface: str = ""

    @property
    def is_custom(self) -> bool:
        """Whether it stands for a custom tool."""
        return isinstance(self.tool, CustomTool)

    def definition(self) -> dict[str, Any]:
        """Return the function in the form that chat templates take."""
        function = self.tool.definition()
        description = "\n\n".join(filter(None, (self.preface, function["description"])))
        return {"type": "function", "function": {"name": self.shown, **function, "description": description}}


class ToolSet:
    """The tools of a request that the model is shown.

    Args:
        tools: The tools of the request. Those that a server would have to run are left out.
        found: Further tools, from items of the input; one with the name of another is left out.

    Raises:
        RequestError: Two different tools would have one name for the model; the error gives it.

    """

    def __init__(self, tools: Iterable[ClientTool | ServerTool], found: Iterable[ClientTool | ServerTool] = ()) -> None:
        self.shown = [shown for tool in tools for shown in _shown(tool)]
        names = {each.shown for each in self.shown}
        for shown in (shown for tool in found for shown in _shown(tool)):
            if shown.shown not in names:
                names.add(shown.shown)
                self.shown.append(shown)
        self._by_name: dict[str, ShownTool] = {}
        for each in self.shown:
            other = self._by_name.setdefault(each.shown, each)
            if (other.namespace, other.is_custom) != (each.namespace, each.is_custom):
                raise RequestError(
                    f"tools: two different tools have the name {each.shown[:80]!r} for the model; rename one of them",
                    param="tools",
                )

    def definitions(self) -> list[dict[str, Any]] | None:
        """Return the tools in the form that chat templates take, one dict a tool; None without any."""
        return [each.definition() for each in self.shown] or None

    def find(self, shown: str) -> ShownTool | None:
        """Return the tool that the model calls by this name; None for a name that the model was not shown."""
        return self._by_name.get(shown)

    def choice(self, asked: Choice | None) -> str | dict[str, Any] | None:
        """Return a request's `tool_choice` with the names that the model sees, for `resolve_tool_choice`.

        Raise `RequestError` for a name without namespace that several namespaces have, and for an unknown namespace.
        """
        if isinstance(asked, NamedFunction | NamedCustom):
            return {"type": "function", "name": self._resolved(asked.name, asked.namespace or None, "tool_choice")}
        if isinstance(asked, AllowedTools):
            return {"type": "allowed_tools", "mode": asked.mode, "tools": list(self._allowed(asked.tools))}
        return asked

    def _allowed(self, tools: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for place, tool in enumerate(tools):
            name, namespace, where = tool.get("name"), tool.get("namespace"), f"tool_choice.tools[{place}]"
            if tool.get("type") == "namespace":
                inside = [each.shown for each in self.shown if name and each.namespace == name]
                if not inside:
                    raise RequestError(f"{where} names no namespace of the tools", param=where)
                yield from ({"type": "function", "name": shown} for shown in inside)
            elif tool.get("type") in CLIENT_TOOLS and isinstance(name, str):
                space = namespace if isinstance(namespace, str) else None
                yield {"type": "function", "name": self._resolved(name, space, where)}
            else:
                yield tool

    def _resolved(self, name: str, namespace: str | None, where: str) -> str:
        """Return the name that the model sees; `name` may lack its namespace if only one tool is called so."""
        joined = joined_name(name, namespace)
        if namespace or joined in self._by_name:
            return joined
        named = [each.shown for each in self._by_name.values() if each.tool.name == name]
        if len(named) > 1:
            raise RequestError(f"{where}: {len(named)} namespaces have a tool {name[:80]!r}; name one", param=where)
        return named[0] if named else name


def _shown(tool: ClientTool | ServerTool) -> Iterator[ShownTool]:
    match tool:
        case FunctionTool() | CustomTool():
            yield ShownTool(tool.name, tool)
        case NamespaceTool():
            for place, each in enumerate(tool.tools):
                preface = "" if place or not tool.description else f"{tool.name}: {tool.description}"
                yield ShownTool(joined_name(each.name, tool.name), each, tool.name, preface)
        case _:
            pass
