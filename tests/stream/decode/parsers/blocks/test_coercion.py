from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.decode.parsers.blocks.coercion import escaped, escaped_runs, json_of, parameter_types, quoted


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("null", {"null", "string"}, "null"),
        ("NULL", {"null", "integer"}, "null"),
        ("nil", {"null", "string"}, '"nil"'),
        ("null", {"string"}, '"null"'),
        (" 42 ", {"integer"}, "42"),
        ("+042", {"integer"}, "42"),
        ("5.0", {"integer"}, "5"),
        ("5.5", {"integer"}, '"5.5"'),
        ("5.5", {"integer", "number"}, "5.5"),
        ("1e400", {"number"}, '"1e400"'),
        ("nan", {"number"}, '"nan"'),
        (".5", {"number"}, "0.5"),
        ("3.140", {"number"}, "3.140"),
        ("1", {"boolean"}, "true"),
        ("False", {"boolean"}, "false"),
        ("1", {"boolean", "integer"}, "1"),
        ("yes", {"boolean"}, '"yes"'),
        ('{"a": 1}', {"object"}, '{"a": 1}'),
        ('{"a": 1}', {"array"}, '"{\\"a\\": 1}"'),
        ("[1, 2]", {"array", "string"}, "[1, 2]"),
        ("[1, NaN]", {"array"}, '"[1, NaN]"'),
        ("{'a': 1}", {"object"}, "\"{'a': 1}\""),
        ("x\ny", {"string"}, '"x\\ny"'),
        ("7" * 5000, {"integer"}, '"' + "7" * 5000 + '"'),
        ("[" * 100_000, {"array"}, '"' + "[" * 100_000 + '"'),
        # Nothing is declared: JSON is JSON, the rest a string.
        ("12", set(), "12"),
        ('{"a": [1]}', set(), '{"a": [1]}'),
        ('"quoted"', set(), '"\\"quoted\\""'),
        ("words", set(), '"words"'),
    ],
)
def test_a_value_is_json_of_the_first_type_that_it_is(text, types, expected):
    assert json_of(text, frozenset(types)) == expected


def types(declared, **root):
    return parameter_types({"properties": {"a": declared}, **root}, "a")


def test_types_are_collected_from_everything_that_declares_them():
    assert types({"type": "string"}) == {"string"}
    assert types({"type": ["integer", "null"]}) == {"integer", "null"}
    assert types({"type": ["int64", "str", "list"]}) == {"integer", "string", "array"}
    assert types({"type": "string", "nullable": True}) == {"string", "null"}
    assert types({"anyOf": [{"type": "integer"}, {"oneOf": [{"type": "array"}]}]}) == {"integer", "array"}
    assert types({"enum": ["x", 1, None, 1.5, True, [], {}]}) == {
        *('"x"', "string", "integer", "null", "number", "boolean", "array", "object")
    }
    assert types({"const": "x"}) == {"string"}
    assert types({"$ref": "#/$defs/b~1c"}, **{"$defs": {"b/c": {"type": "boolean"}}}) == {"boolean"}


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"enum": ["7", 8]}, ['"7"', "8", '"x"']),
        ({"type": ["string", "null"], "enum": ["null", None]}, ['"7"', '"8"', '"x"']),
        ({"anyOf": [{"const": "7"}, {"type": "integer"}]}, ['"7"', "8", '"x"']),
        ({"type": ["integer", "string"]}, ["7", "8", '"x"']),
    ],
)
def test_a_text_that_the_schema_lists_is_that_text(declared, expected):
    assert [json_of(text, types(declared)) for text in ("7", "8", "x")] == expected
    assert json_of("null", types({"enum": ["null", None]})) == '"null"'


@pytest.mark.parametrize(
    "declared", [None, 1, "string", [], {}, {"type": 3}, {"$ref": "#/x"}, {"anyOf": 1}, {"enum": 5}]
)
def test_what_declares_nothing_gives_no_types(declared):
    assert types(declared) == frozenset()
    assert parameter_types({}, "a") == parameter_types({"properties": 1}, "a") == frozenset()


def test_schemas_that_contain_themselves_end():
    assert types({"$ref": "#/properties/a"}) == frozenset()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_runs_are_the_text_and_what_json_makes_of_it(text):
    runs = list(escaped_runs(text))
    assert "".join(run for run, _ in runs) == text
    assert "".join(json for _, json in runs) == escaped(text)
    assert json.loads(quoted(text)) == text


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sets(st.sampled_from(["null", "integer", "number", "boolean", "object", "array", "string"])),
)
def test_any_text_of_any_types_is_json(text, types):
    json.loads(json_of(text, frozenset(types)))


def test_schemas_that_refer_to_themselves_are_looked_at_once():
    root = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 50 + [{"type": "integer"}]}}}
    root["properties"] = {"x": {"$ref": "#/$defs/a"}}
    assert parameter_types(root, "x") == {"integer"}
    assert parameter_types({"allOf": [{"properties": {"x": {"type": "null"}}}]}, "x") == {"null"}
