"""Coercion of arguments written as text to JSON of the type that the tool's schema declares.

The types that a schema allows for a value are tried in this order: null, integer, number, boolean, object or array,
string (as vLLM 0.33 does). Text that an enum lists takes precedence and stays that text (as in SGLang's
test_glm47_schema_types.py). `None`, which templates write for null, is null unless a string is allowed. A value of no
allowed type stays a string, so no call is ever dropped. A parameter without a declared type is JSON if its text is JSON,
and a string otherwise.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Any

Types = frozenset[str]
"""Names of JSON schema types, empty if none is declared; and the texts that an enum lists, as JSON, if a type other
than string is allowed too."""

STRING: Types = frozenset({"string"})

MAX_DIGITS = 4000
"""Most digits of an integer; longer ones stay strings, because Python parses at most 4,300."""

_INTEGER = re.compile(r"[+-]?\d+")
_RUNS = re.compile(r'(?P<same>[^"\\\x00-\x1f]+)|["\\\x00-\x1f]+')
_BOOLEANS = {"true": "true", "1": "true", "false": "false", "0": "false"}


def json_of(text: str, types: Types) -> str:
    """Convert an argument that a model wrote as plain text to the text of a JSON value of one of the allowed types.

    Text that fits no allowed type becomes a JSON string. Without declared types, valid JSON stays as it is.

    Args:
        text: The argument as the model wrote it.
        types: The types of a `ValueSchema`; empty if the schema declares no type.

    """
    stripped = text.strip()
    if not types:
        found = _parsed(stripped)
        return quoted(text) if found is None or isinstance(found[0], str) else stripped
    if (text_itself := quoted(stripped)) in types:
        return text_itself
    if "null" in types and (stripped.lower() == "null" or (stripped == "None" and "string" not in types)):
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
    kind = None if found is None else type_of(found[0])
    fits = not types or kind in types or (kind == "integer" and "number" in types)
    return text.strip() if kind is not None and fits else json_of(text, types)


def quoted(text: str) -> str:
    """Return a text as a JSON string, quotes included."""
    return encode_basestring(text)


def escaped(text: str) -> str:
    """Return a text escaped as the inside of a JSON string, without quotes."""
    return encode_basestring(text)[1:-1]


def escaped_runs(text: str) -> Iterator[tuple[str, str]]:
    """Cut a text into runs of characters that a JSON string must escape, and runs of other characters.

    Yields:
        Each run, and its form inside a JSON string.

    """
    for run in _RUNS.finditer(text):
        yield run[0], run[0] if run["same"] else escaped(run[0])


def type_of(value: Any) -> str:
    """Return the name of the JSON schema type of a JSON value."""
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
    """Return the value of a JSON text as a tuple of one item, or None for invalid JSON.

    The tuple tells the value null from invalid JSON. NaN and infinite numbers are invalid.
    """
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
