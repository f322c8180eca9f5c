"""Coercion of arguments written as text to JSON of the type that the tool's schema declares.

The types that a schema allows for a value are tried in this order: null, integer, number, boolean, object or array,
string (as vLLM 0.33 does). Text that an enum lists takes precedence and stays that text (as in SGLang's
test_glm47_schema_types.py). A value of no allowed type stays a string, so no call is ever dropped. A parameter
without a declared type is JSON if its text is JSON, and a string otherwise.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tokenweir.stream.decode.parsers.schemas import branches, member

Types = frozenset[str]
"""Names of JSON schema types, empty if none is declared; and the texts that an enum lists, as JSON, if a type other
than string is allowed too."""

STRING: Types = frozenset({"string"})

MAX_DIGITS = 4000
"""Most digits of an integer; longer ones stay strings, because Python parses at most 4,300."""

_NAMES: dict[str, str] = (
    dict.fromkeys(("str", "text", "varchar", "char", "enum"), "string")
    | dict.fromkeys(("int", "int32", "int64", "uint", "uint32", "uint64", "long", "short", "unsigned"), "integer")
    | dict.fromkeys(("float", "float32", "float64", "double"), "number")
    | dict.fromkeys(("list", "arr", "sequence"), "array")
    | {"bool": "boolean", "dict": "object", "map": "object"}
)
"""JSON schema types by the names that other languages use, as in vLLM 0.33."""

_INTEGER = re.compile(r"[+-]?\d+")
_RUNS = re.compile(r'(?P<same>[^"\\\x00-\x1f]+)|["\\\x00-\x1f]+')
_BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}


def parameter_types(schema: Mapping[str, Any], parameter: str) -> Types:
    """Return the JSON types that the schema of a function's arguments allows for one of them, as `types_of` does."""
    return types_of(member(schema, schema, parameter), schema)


def types_of(schema: Any, root: Mapping[str, Any]) -> Types:
    """Return the names of the JSON types that a schema allows; empty if it declares none.

    If a type other than string is allowed, the strings that an enum lists are in the set too, each as JSON.

    Args:
        schema: The JSON schema of a value.
        root: The document in which references (`$ref`) are looked up.

    """
    found: set[str] = set()
    listed: set[str] = set()
    for branch in branches(schema, root):
        declared = branch.get("type")
        values = branch.get("enum", [branch["const"]] if "const" in branch else [])
        values = values if isinstance(values, list | tuple) else []
        listed |= {quoted(value) for value in values if isinstance(value, str)}
        if isinstance(declared, str):
            found.add(_NAMES.get(declared, declared))
        elif isinstance(declared, list | tuple):
            found |= {_NAMES.get(name, name) for name in declared if isinstance(name, str)}
        else:
            found |= {_type_of(value) for value in values}
        if branch.get("nullable") is True:
            found.add("null")
    return frozenset(found | listed if found - STRING else found)


def json_of(text: str, types: Types) -> str:
    """Convert an argument that a model wrote as plain text to the text of a JSON value of one of the allowed types.

    Text that fits no allowed type becomes a JSON string. Without declared types, valid JSON stays as it is.

    Args:
        text: The argument as the model wrote it.
        types: The result of `types_of`; empty if the schema declares no type.

    """
    stripped = text.strip()
    if not types:
        found = _parsed(stripped)
        return quoted(text) if found is None or isinstance(found[0], str) else stripped
    if (text_itself := quoted(stripped)) in types:
        return text_itself
    if "null" in types and stripped.lower() == "null":
        return "null"
    if "integer" in types and (integer := _integer(stripped)) is not None:
        return integer
    if "number" in types and (number := _number(stripped)) is not None:
        return number
    if "boolean" in types and stripped.lower() in _BOOLEANS:
        return _BOOLEANS[stripped.lower()]
    if not types.isdisjoint(("object", "array")) and (found := _parsed(stripped)) is not None:
        kind = "object" if isinstance(found[0], dict) else "array" if isinstance(found[0], list) else ""
        if kind in types:
            return stripped
    return quoted(text)


def json_as_written(text: str, types: Types) -> str:
    """Return the text of a JSON value for an argument that the model has marked as JSON.

    It is the argument itself if that is JSON of an allowed type, or of any type where no types are declared.
    Otherwise it is the result of `json_of`.
    """
    found = _parsed(text)
    kind = None if found is None else _type_of(found[0])
    fits = not types or kind in types or (kind == "integer" and "number" in types)
    return text.strip() if kind is not None and fits else json_of(text, types)


def quoted(text: str) -> str:
    """Return a text as a JSON string, quotes included."""
    return json.dumps(text, ensure_ascii=False)


def escaped(text: str) -> str:
    """Return a text escaped as the inside of a JSON string, without quotes."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def escaped_runs(text: str) -> Iterator[tuple[str, str]]:
    """Cut a text into runs of characters that a JSON string must escape, and runs of other characters.

    Yields:
        Each run, and its form inside a JSON string.

    """
    for run in _RUNS.finditer(text):
        yield run[0], run[0] if run["same"] else escaped(run[0])


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def _integer(text: str) -> str | None:
    if len(text) > MAX_DIGITS:
        return None
    if _INTEGER.fullmatch(text) and text.isascii():
        return str(int(text))
    number = _float(text)
    return str(int(number)) if number is not None and number.is_integer() else None


def _number(text: str) -> str | None:
    found = _parsed(text)
    if found is not None and isinstance(found[0], int | float) and not isinstance(found[0], bool):
        return text
    number = _float(text)
    return None if number is None else repr(number)


def _float(text: str) -> float | None:
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _parsed(text: str) -> tuple[Any] | None:
    """Return the value of a JSON text in a tuple, because it may be None; return None for invalid JSON."""
    try:
        return (json.loads(text, parse_constant=_no_constant, parse_float=_finite),)
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is out of range")
    return number
