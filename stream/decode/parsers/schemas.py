"""Schemas of a request's tools: the functions that a model can call, and the types of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tokenweir.templates.styles.tools import Tools

ToolSchemas = Mapping[str, Mapping[str, Any]]
"""JSON schemas of parameters by function name; empty where a tool has no schema."""

MAX_NESTING = 16
"""Nesting depth up to which schemas are searched, references included."""


def tool_schemas_of(tools: Tools | ToolSchemas | None) -> ToolSchemas:
    """Return the JSON schemas of the arguments of a request's tools, by function name.

    Args:
        tools: A list of tools in OpenAI's form; None for no tools. A mapping of schemas by name is returned unchanged.

    Raises:
        TypeError: `tools` is not a list, or a tool is not a mapping with a function's name; the message gives its
            index.

    """
    if isinstance(tools, Mapping):
        return tools
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
    return found


def branches(schema: Any, root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema, the schemas that it refers to, and the alternatives (`anyOf` and so on) of all of these, each once.

    References are looked up in `root`.
    """
    ahead, seen = [(schema, 0)], set()
    while ahead:
        schema, depth = ahead.pop()
        if not isinstance(schema, Mapping) or depth > MAX_NESTING or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        inner = [target] if (target := _target(schema.get("$ref"), root)) is not None else []
        for key in ("anyOf", "oneOf", "allOf"):
            inner += listed if isinstance(listed := schema.get(key), list | tuple) else ()
        ahead += [(branch, depth + 1) for branch in reversed(inner)]


def member(schema: Any, root: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the schema of the member `name` of an object; an empty one, which allows everything, if not declared.

    Args:
        schema: The schema of the object.
        root: The document in which references are looked up.

    """
    listed = [
        properties for branch in branches(schema, root) if isinstance(properties := branch.get("properties"), Mapping)
    ]
    found = [properties[name] for properties in listed if name in properties]
    return _one_of(found or [branch.get("additionalProperties") for branch in branches(schema, root)])


def element(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of an array's elements; an empty one, which allows everything, if not declared.

    Args:
        schema: The schema of the array.
        root: The document in which references are looked up.

    """
    return _one_of([branch.get("items") for branch in branches(schema, root)])


def _one_of(schemas: list[Any]) -> Mapping[str, Any]:
    found = [schema for schema in schemas if isinstance(schema, Mapping)]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _target(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the target of a reference within a schema; None for a value that is not a reference or has no target."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = root
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        target = target.get(part) if isinstance(target, Mapping) else None
    return target
