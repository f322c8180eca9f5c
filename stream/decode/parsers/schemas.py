"""Tools of a request: the functions that a model can call, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tokenweir.stream.decode.parsers.schema_document import SchemaDocument
from tokenweir.stream.decode.parsers.value_schemas import ValueSchema
from tokenweir.templates.styles.tools import Tools


class ToolSchemas(Mapping[str, Mapping[str, Any]]):
    """JSON schemas of parameters by function name; empty where a tool has no schema.

    Types that were looked up are cached; decoders of several answers to one request may share an object.
    """

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._schemas = dict(schemas)
        self._arguments: dict[str, ValueSchema] = {}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        return self._schemas[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def __reduce__(self) -> tuple[Callable[..., ToolSchemas], tuple[Mapping[str, Mapping[str, Any]]]]:
        return ToolSchemas, (self._schemas,)

    def refusal(self, function: str) -> str:
        """Return why a call of a function is text: the request has tools, but not this one; otherwise an empty text."""
        return f"{function!r:.80} is no function of the request" if self and function not in self._schemas else ""

    def arguments(self, function: str) -> ValueSchema:
        """Return the schema of a function's arguments; one without types for an unknown function."""
        if function not in self._arguments:
            schema = self._schemas.get(function, {})
            self._arguments[function] = ValueSchema(SchemaDocument(schema), schema)
        return self._arguments[function]


def tool_schemas_of(tools: Tools | Mapping[str, Mapping[str, Any]] | None) -> ToolSchemas:
    """Return the JSON schemas of the arguments of a request's tools, by function name.

    Args:
        tools: A list of tools in OpenAI's form; None for no tools. A mapping has the schemas by name.

    Raises:
        TypeError: `tools` is not a list, or a tool is not a mapping with a function's name; the message gives its
            index.

    """
    if isinstance(tools, ToolSchemas):
        return tools
    if isinstance(tools, Mapping):
        return ToolSchemas(tools)
    if not isinstance(tools, Sequence | None):
        raise TypeError(f"tools must be a list, not {type(tools).__name__}")
    found: dict[str, Mapping[str, Any]] = {}
    for place, tool in enumerate(tools or ()):
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if function is None or not isinstance(name, str):
            raise TypeError(f"tools[{place}] is {tool!r:.80}, not a mapping that describes a function by its name")
        parameters = function.get("parameters")
        found[name] = parameters if isinstance(parameters, Mapping) else {}
    return ToolSchemas(found)
