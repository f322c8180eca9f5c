"""`tool_choice` and `parallel_tool_calls`: passed to a template that reads them, and refused where nobody would hear.

A template can only tell the model. So a choice that it does not read would be dropped without a word, and the answer
would look as if the model had been asked; only "none" can be had from every template, by not showing the tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate

ToolChoice = str | Mapping[str, Any]  # "auto", "none", "required", or one function as OpenAI's clients name it
Tools = Sequence[Mapping[str, Any]]


def honour_tool_choice(
    template: ChatTemplate, tools: Tools | None, tool_choice: ToolChoice | None, parallel_tool_calls: bool | None
) -> tuple[Tools | None, dict[str, Any]]:
    """What to render so that the model hears of a choice.

    Args:
        template: The model's template.
        tools: The functions that the model may call.
        tool_choice: "auto" or None leaves it to the model; "none", "required", or one function:
            `{"type": "function", "function": {"name": ...}}`, or with the name beside the type.
        parallel_tool_calls: Whether an answer may have several calls; None leaves it to the model.

    Returns:
        The tools to show, and variables for `ChatTemplate.render`. One function is asked for by showing no other one and
        requiring a call.

    Raises:
        TemplateError: The choice is none of these, names no tool, or is one that the template does not read.

    """
    reads_choice = "tool_choice" in template.variables
    if tool_choice == "none" and not (tools and reads_choice):
        return None, {}
    variables: dict[str, Any] = {}
    if tools and parallel_tool_calls is not None:
        if "parallel_tool_calls" in template.variables:
            variables["parallel_tool_calls"] = parallel_tool_calls
        elif not parallel_tool_calls:
            raise TemplateError(_unheard(template, "parallel_tool_calls=False"))
    if tool_choice is None or tool_choice == "auto":
        return tools, variables
    if tool_choice == "none":
        return tools, variables | {"tool_choice": "none"}
    name = None if tool_choice == "required" else _name(tool_choice)
    shown = [tool for tool in tools or () if name is None or _function_name(tool) == name]
    if not shown:
        what = (
            f"names {name!r}, which is none of the {len(tools or ())} tools" if name else "requires a call of no tools"
        )
        raise TemplateError(f"tool_choice {what}")
    if not reads_choice:
        raise TemplateError(_unheard(template, f"tool_choice={tool_choice!r}"))
    return shown, variables | {"tool_choice": "required"}


def _name(tool_choice: ToolChoice) -> str:
    """The function that a choice names."""
    name = _function_name(tool_choice)
    if isinstance(tool_choice, Mapping) and tool_choice.get("type") == "function" and isinstance(name, str) and name:
        return name
    raise TemplateError(f"tool_choice {tool_choice!r} is not auto, none, required or one function")


def _function_name(value: object) -> object:
    """The name in a tool's description or in a choice; both write it with a `function` around it or without."""
    function = value.get("function", value) if isinstance(value, Mapping) else None
    return function.get("name") if isinstance(function, Mapping) else None


def _unheard(template: ChatTemplate, what: str) -> str:
    return (
        f"{what} cannot be honoured: the chat template {template.name!r} does not read it, and nothing else would tell the "
        "model"
    )
