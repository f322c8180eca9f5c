"""Values that are written as tags within tags, by schemas."""

from __future__ import annotations

import json

import pytest
from case_tables import cases

from tokenweir.stream.decode.parsers.blocks.nested_values import MAX_DEPTH, nested_json
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of

CASES = cases(__file__)

MARK = "]<]minimax[>["
POINT = {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}}


def tag(name, *inner):
    return f"{MARK}<{name}>{''.join(inner)}{MARK}</{name}>"


def read(text, schema, **root):
    argument = tool_schemas_of({"f": {"properties": {"a": schema}, **root}}).arguments("f").member("a")
    return json.loads(nested_json(text, argument, MARK))


@pytest.mark.parametrize(("text", "schema", "value"), CASES["tags_and_schemas_make_the_value"])
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
