"""Styles of tool calls: the table `tools.toml`.

A block of calls stands in the answer. Each call is an object with the name and the arguments (`{"name": ...,
"arguments": {...}}`), perhaps in a list; a header with the name before the object of the arguments; a name with tagged
parameters, whose types the tools' schemas know; or a call as a programming language writes it. The
markup is that of the models' own chat templates and of the parsers of vLLM 0.33, SGLang 0.5.23 and llama.cpp; a comment
names the source where a style's template was not at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import convert

from tokenweir.templates.styles.grammars import LiteralStyle, ParameterStyle, ToolStyle
from tokenweir.templates.styles.names import named_style, read_table

Tools = Sequence[Mapping[str, Any]]
"""Tools as `chat()` and templates take them: `{"type": "function", "function": {"name": ..., "parameters": ...}}`,
the inner object alone, or both merged into one object."""

_CLASSES: dict[str, type[ToolStyle]] = {
    "parameters": ParameterStyle,
    "literals": LiteralStyle,
    "typed literals": LiteralStyle,
}
"""The class of a style by its grammar, if that is not `ToolStyle`."""
_ROWS, TOOL_FAMILIES = read_table("tools.toml")

TOOL_STYLES: dict[str, ToolStyle] = {
    name: convert(row, _CLASSES.get(row.get("grammar", ""), ToolStyle)) for name, row in _ROWS.items()
}
"""Every style by its name. The particular come first: where several are shown, the first is taken."""


def tool_style_of(style: str | ToolStyle) -> ToolStyle:
    """Look up a style by its own name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        style: A name, or a style, which is given back.

    Raises:
        TypeError: It is neither; a list of tools is for `chat()` and the template.
        ValueError: No style has the name; the message lists those that exist.

    """
    return style if isinstance(style, ToolStyle) else named_style(style, "tool style", TOOL_STYLES, TOOL_FAMILIES)
