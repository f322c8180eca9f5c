from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.decode.parsers.blocks.coercion import escaped, escaped_runs, json_of, quoted


@pytest.mark.parametrize(
    ("text", "types", "expected"),
    [
        ("null", {"null", "string"}, "null"),
        ("NULL", {"null", "integer"}, "null"),
        ("nil", {"null", "string"}, '"nil"'),
        ("None", {"null", "integer"}, "null"),
        (" None\n", {"null"}, "null"),
        ("None", {"null", "string"}, '"None"'),
        ("None", {"integer"}, '"None"'),
        ("none", {"null", "integer"}, '"none"'),
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
