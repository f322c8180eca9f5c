"""The tools of a request: what a parser may know of the functions that a model can call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Tools = Sequence[Mapping[str, Any]]
"""Tools as `chat()` and templates take them: `{"type": "function", "function": {"name": ..., "parameters": ...}}`, or
the inner object alone, or the two as one object."""

ToolSchemas = Mapping[str, Mapping[str, Any]]
"""The JSON schema of each function's parameters, by the function's name; empty where a tool gives none."""


def tool_schemas_of(tools: Tools | ToolSchemas | None) -> ToolSchemas:
    """List the functions of a request's tools by name; what is such a list already is given back.

    Raises:
        TypeError: A tool is no mapping with a name; the message says which.

    """
    if isinstance(tools, Mapping):
        return tools
    found: dict[str, Mapping[str, Any]] = {}
    for place, tool in enumerate(tools or ()):
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if function is None or not isinstance(name, str):
            raise TypeError(
                f"tool_schemas[{place}] is {tool!r:.80}, not a mapping that describes a function by its name"
            )
        parameters = function.get("parameters")
        found[name] = parameters if isinstance(parameters, Mapping) else {}
    return found
