"""`tool_choice`: enforced by an engine that honours a JSON schema, shown by a template that reads it, or refused.

A choice that neither honours is refused, because the answer would look as if the model had been asked. A schema guarantees
the choice: the answer is then a list of calls as JSON (`CALL_LIST`), whatever markup the model has for calls. A template
can only tell the model. "none" works with every template: the tools are not shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import read_tools
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.styles.tools import Tools

ToolChoice = str | Mapping[str, Any]  # "auto", "none", "required", or one function as OpenAI's clients name it

CALL_LIST = "xlam"
"""The tool style of an answer that fits `ResolvedToolChoice.json_schema`."""


class ResolvedToolChoice(Struct, frozen=True):
    """The arguments for template and engine by which they honour a request's `tool_choice`.

    Attributes:
        tools: The tools to show to the model; None for no tools. If the choice names a function, that one alone.
        variables: Variables for `ChatTemplate.render`.
        json_schema: The schema of the answer for the engine; None if the model writes calls in its own markup.

    """

    tools: Tools | None
    variables: dict[str, Any] = {}
    json_schema: dict[str, Any] | None = None


def resolve_tool_choice(
    template: ChatTemplate,
    tools: Tools | None,
    tool_choice: ToolChoice | None,
    parallel_tool_calls: bool | None,
    *,
    forces: bool = False,
) -> ResolvedToolChoice:
    """Resolve a choice to the arguments of template and engine.

    Args:
        template: The model's template.
        tools: The functions that the model may call.
        tool_choice: "auto" or None leaves it to the model; "none", "required", or one function:
            `{"type": "function", "function": {"name": ...}}`, or with the name beside the type; or some of the tools:
            `{"type": "allowed_tools", "mode": "auto", "tools": [...]}`, or with both fields in `allowed_tools`. The others
            are not shown to the model.
        parallel_tool_calls: Whether an answer may have several calls; None leaves it to the model. A template that
            reads this variable gets it. If False, a JSON schema allows one call only; without a schema, the decoder must
            end the answer after the first call.
        forces: Whether the engine makes an answer fit a JSON schema.

    Raises:
        TemplateError: The choice has another form, names no tool, or is honoured by neither engine nor template; or the
            tools are not as `ChatTemplate.render` takes them.

    """
    if isinstance(tool_choice, Mapping) and tool_choice.get("type") == "allowed_tools":
        tools, tool_choice = _allowed(tools, tool_choice)
    reads_choice = "tool_choice" in template.variables
    if tool_choice == "none" and not (tools and reads_choice):
        return ResolvedToolChoice(None)
    variables: dict[str, Any] = {}
    if tools and parallel_tool_calls is not None and "parallel_tool_calls" in template.variables:
        variables["parallel_tool_calls"] = parallel_tool_calls
    if tool_choice is None or tool_choice == "auto":
        return ResolvedToolChoice(tools, variables)
    if tool_choice == "none":
        return ResolvedToolChoice(tools, variables | {"tool_choice": "none"})
    name = None if tool_choice == "required" else _name(tool_choice)
    tools = [] if tools is None else read_tools(tools)
    shown = [tool for tool in tools if name is None or _field(tool, "name") == name]
    if not shown:
        what = f"names {name!r}, which is not among the {len(tools)} tools" if name else "requires a call of no tools"
        raise TemplateError(f"tool_choice {what}")
    if reads_choice:
        variables["tool_choice"] = "required"
    elif not forces:
        raise TemplateError(
            f"tool_choice={tool_choice!r} cannot be honoured: the engine is not known to hold an answer to a JSON schema, "
            f"and the chat template {template.name!r} does not read it"
        )
    if not forces:
        return ResolvedToolChoice(shown, variables)
    one = name is not None or parallel_tool_calls is False
    return ResolvedToolChoice(shown, variables, call_list_schema(shown, one=one))


def call_list_schema(tools: Tools, *, one: bool) -> dict[str, Any]:
    """Return the JSON schema of a list of calls `{"name": ..., "arguments": ...}` of these functions.

    The list has at least one call; with `one`, exactly one.

    References within a function's parameters are rewritten to their place in the whole schema.
    """
    definitions: dict[str, Any] = {}
    calls = []
    for number, tool in enumerate(tools):
        parameters = _field(tool, "parameters") or {"type": "object"}
        place = f"call{number}"
        led = _lead(parameters, f"#/$defs/{place}")
        if led != parameters:
            definitions[place] = led
            led = {"$ref": f"#/$defs/{place}"}
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": [_field(tool, "name")]}, "arguments": led},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    schema: dict[str, Any] = {"type": "array", "items": {"anyOf": calls} if len(calls) > 1 else calls[0], "minItems": 1}
    if one:
        schema["maxItems"] = 1
    return schema | ({"$defs": definitions} if definitions else {})


def _lead(schema: Any, root: str) -> Any:
    """Return a copy of a JSON schema in which references to places within it (`#/...`) begin with `root` instead of `#`."""
    if isinstance(schema, Mapping):
        return {
            key: root + value[1:]
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _lead(value, root)
            for key, value in schema.items()
        }
    return [_lead(item, root) for item in schema] if isinstance(schema, list | tuple) else schema


def _name(tool_choice: ToolChoice) -> str:
    """Return the name of the function that a `tool_choice` names; raise `TemplateError` for a choice of another form."""
    name = _field(tool_choice, "name")
    if isinstance(tool_choice, Mapping) and tool_choice.get("type") == "function" and isinstance(name, str) and name:
        return name
    raise TemplateError(f"tool_choice {tool_choice!r} is not auto, none, required or one function")


def _allowed(tools: Tools | None, tool_choice: Mapping[str, Any]) -> tuple[Tools, str]:
    """Return the tools that a choice of the type `allowed_tools` allows, and its mode.

    Tools of other types than functions are skipped. Raise `TemplateError` for a malformed choice or an unknown name.
    """
    allowed = tool_choice.get("allowed_tools", tool_choice)
    chosen, mode = (allowed.get("tools"), allowed.get("mode")) if isinstance(allowed, Mapping) else (None, None)
    if not isinstance(chosen, list | tuple) or mode not in ("auto", "none", "required"):
        raise TemplateError(
            f"tool_choice {tool_choice!r} has no list of tools, or another mode than auto, none and required"
        )
    given = [] if tools is None else read_tools(tools)
    known = {_field(tool, "name") for tool in given}
    names = set()
    for name in [_field(tool, "name") for tool in chosen if _is_function(tool)]:
        if not isinstance(name, str) or name not in known:
            raise TemplateError(f"tool_choice names {name!r}, which is not among the {len(given)} tools")
        names.add(name)
    return [tool for tool in given if _field(tool, "name") in names], mode


def _is_function(tool: object) -> bool:
    return not isinstance(tool, Mapping) or tool.get("type", "function") == "function"


def _field(value: object, field: str) -> Any:
    """Return a field of a tool or a tool choice, from its `function` object if it has one; None if it is missing."""
    function = value.get("function", value) if isinstance(value, Mapping) else None
    return function.get(field) if isinstance(function, Mapping) else None
