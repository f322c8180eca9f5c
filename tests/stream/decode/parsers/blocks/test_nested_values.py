"""Values that are written as tags within tags, by schemas."""

from __future__ import annotations

import json

import pytest

from tokenweir.stream.decode.parsers.blocks.nested_values import MAX_DEPTH, nested_json
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of

MARK = "]<]minimax[>["
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}}


def tag(name, *inner):
    return f"{MARK}<{name}>{''.join(inner)}{MARK}</{name}>"


def read(text, schema, **root):
    argument = tool_schemas_of({"f": {"properties": {"a": schema}, **root}}).arguments("f").member("a")
    return json.loads(nested_json(text, argument, MARK))


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (tag("x", "1.5") + tag("name", "2"), POINT, {"x": 1.5, "name": "2"}),
        (tag("item", "1") + tag("item", "2"), {"type": "array", "items": {"type": "string"}}, ["1", "2"]),
        (tag("item", tag("x", "1")), {"type": "array", "items": POINT}, [{"x": 1}]),
        (tag("point", "1"), {"type": "array", "items": {"type": "integer"}}, [1]),
        (tag("item", "1"), {"type": "object"}, {"item": 1}),
        (tag("item", "1"), {}, [1]),
        (tag("item", "1") + tag("x", "2"), {}, {"item": 1, "x": 2}),
        (tag("item", "1"), {"anyOf": [{"type": "array"}, POINT]}, [1]),
        (tag("x", "7"), {"anyOf": [{"type": "array"}, POINT]}, {"x": 7}),
        (tag("tag", "a") + tag("tag", "b"), {"type": "object"}, {"tag": ["a", "b"]}),
        (tag("a", "1"), {"type": "object", "additionalProperties": {"type": "string"}}, {"a": "1"}),
        ("", {"type": "array"}, []),
        (" ", {"type": "object"}, {}),
        ('{"a": 1}', {"type": "object"}, {"a": 1}),
        ("so it is", {"type": "object"}, "so it is"),
        (" \n" + tag("x", "1") + "\n", POINT, {"x": 1}),
    ],
)
def test_tags_and_schemas_make_the_value(text, schema, value):
    assert read(text, schema) == value


def test_references_point_into_the_functions_schema():
    assert read(tag("name", "1"), {"$ref": "#/$defs/point"}, **{"$defs": {"point": POINT}}) == {"name": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "before" + tag("x", "1"),
        tag("x", "text" + tag("y", "1")),
        f"{MARK}<x>1",
        f"{MARK}</x>",
        f"{MARK}<x>1{MARK}</y>",
        f"{MARK}<x>" * (MAX_DEPTH + 1) + f"{MARK}</x>" * (MAX_DEPTH + 1),
    ],
)
def test_what_does_not_fit_together_is_a_string(text):
    assert read(text, {"type": "object"}) == text
