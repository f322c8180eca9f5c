"""Types of arguments, looked up in the JSON schemas of a request's tools."""

from __future__ import annotations

import gc
import json
import pickle
import tomllib
from pathlib import Path

import pytest
from case_tables import cases
from splitting import split_calls

from tokenweir.stream.decode.parsers.blocks.coercion import json_of
from tokenweir.stream.decode.parsers.schema_document import MAX_STEPS, MAX_STEPS_IN_ALL
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of
from tokenweir.stream.decode.parsers.value_schemas import ValueSchema

CASES = cases(__file__)

SCHEMAS = tomllib.loads((Path(__file__).parent / "schemas.toml").read_text("utf-8"))
NUMBER, TEXT, FLAG = {"type": "integer"}, {"type": "string"}, {"type": "boolean"}


def argument(declared, **root):
    return tool_schemas_of({"f": {"properties": {"a": declared}, **root}}).arguments("f").member("a")


def types(declared, **root):
    return argument(declared, **root).types


def arguments_of(**schema):
    return tool_schemas_of({"f": schema}).arguments("f")


@pytest.mark.parametrize("sentence", SCHEMAS)
def test_schemas(sentence):
    for case in SCHEMAS[sentence]:
        value = arguments_of(**json.loads(case["schema"]))
        for step in case["at"]:
            value = value.member(step) if isinstance(step, str) else value.element(step)
        assert value.types == set(case["types"]), case["schema"]


@pytest.mark.parametrize(("declared", "expected"), CASES["a_text_that_the_schema_lists_is_that_text"])
def test_a_text_that_the_schema_lists_is_that_text(declared, expected):
    assert [json_of(text, types(declared)) for text in ("7", "8", "x")] == expected
    assert json_of("null", types({"enum": ["null", None]})) == '"null"'


# -- limits ------------------------------------------------------------------------------------------------------------


class Visited(dict):
    """A schema that counts the lookups of its type."""

    count = 0

    def get(self, key, default=None):
        Visited.count += key == "type"
        return super().get(key, default)


@pytest.fixture
def visits():
    Visited.count = 0
    return lambda: Visited.count


def chain(length):
    steps = {f"d{i}": Visited({"$ref": f"#/$defs/d{i + 1}"}) for i in range(length)}
    return {"$ref": "#/$defs/d0"}, {"$defs": steps | {f"d{length}": NUMBER}}


LONG = [
    ({"anyOf": [Visited(NUMBER) for _ in range(60_000)]}, {}),
    ({"allOf": [Visited() for _ in range(60_000)]}, {}),
    ({"oneOf": [True] * 60_000}, {}),
    ({"dependentSchemas": {str(i): Visited(NUMBER) for i in range(60_000)}}, {}),
    ({"type": ["integer"] * 60_000}, {}),
    ({"enum": list(range(60_000))}, {}),
    chain(100_000),
]


@pytest.mark.parametrize(("declared", "root"), LONG)
def test_a_schema_beyond_the_limit_of_steps_is_untyped(visits, declared, root):
    value = argument(declared, **root)
    assert value.types == frozenset()
    assert value.member("x").types == frozenset()
    assert visits() <= 2 * MAX_STEPS


def test_a_wide_schema_within_the_limit_is_typed():
    assert types({"anyOf": [{"$ref": "#/$defs/x"}] * 200}, **{"$defs": {"x": NUMBER}}) == {"integer"}
    assert types(*chain(20)[:1], **chain(20)[1]) == {"integer"}


def test_shared_alternatives_do_not_multiply(visits):
    defs = {f"d{i}": Visited({"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2}) for i in range(15)}
    assert types({"$ref": "#/$defs/d0"}, **{"$defs": defs | {"d15": NUMBER}}) == {"integer"}
    assert visits() == 15


def test_all_lookups_in_a_functions_schema_share_a_limit(visits):
    wide = {"anyOf": [Visited(NUMBER) for _ in range(MAX_STEPS - 10)]}
    schema = arguments_of(properties={f"a{i}": wide for i in range(1000)})
    found = [schema.member(f"a{i}").types for i in range(1000)]
    assert found[0] == {"integer"}
    assert found[-1] == frozenset()
    assert visits() <= MAX_STEPS_IN_ALL


def test_anchors_are_searched_for_once_and_within_a_limit():
    many = {f"a{i}": {"$ref": f"#n{i}"} for i in range(100)}
    assert arguments_of(properties=many, **{"$defs": {str(i): {} for i in range(60_000)}}).member("a1").types == set()


CALLS = CASES["calls"]
ARGUMENTS = CASES["arguments"]


@pytest.mark.parametrize("style", CALLS)
def test_an_answer_visits_each_schema_once_however_it_comes(visits, style):
    text = CALLS[style] % "".join((ARGUMENTS[style] % name).replace("{}", name) for name in ("a", "b", "a"))
    schema = {"properties": {name: {"anyOf": [Visited(NUMBER) for _ in range(300)]} for name in "ab"}}
    got = split_calls(style, text, {"f": schema})
    assert json.loads(got["calls"][0][1]) == {"a": 7, "b": 7}
    assert visits() <= 3 * 600


@pytest.mark.parametrize("declared", CASES["none_is_null_where_the_schema_allows_it"])
@pytest.mark.parametrize("style", CALLS)
def test_none_is_null_where_the_schema_allows_it(style, declared):
    text = (CALLS[style] % (ARGUMENTS[style] % "a").replace("{}", "a")).replace("7", "None")
    got = split_calls(style, text, {"f": {"properties": {"a": declared}}})
    assert json.loads(got["calls"][0][1]) == {"a": None}
    kept = split_calls(style, text, {"f": {"properties": {"a": {"type": ["string", "null"]}}}})
    assert json.loads(kept["calls"][0][1]) == {"a": "None"}


def test_types_that_were_looked_up_are_no_part_of_a_pickle():
    schemas = tool_schemas_of([{"function": {"name": "f", "parameters": {"properties": {"a": NUMBER}}}}])
    size = len(pickle.dumps(schemas))
    assert schemas.arguments("f").member("a").types == {"integer"}
    copied = pickle.loads(pickle.dumps(schemas))
    assert len(pickle.dumps(schemas)) == size
    assert copied == schemas
    assert copied.arguments("f").member("a").types == {"integer"}


@pytest.mark.parametrize("style", CALLS)
@pytest.mark.parametrize("tools", [{}, {"g": {}}], ids=["no tools", "another tool"])
def test_arguments_of_unknown_functions_are_kept_by_no_later_answer(style, tools):
    def kept():
        gc.collect()
        return sum(type(each) is ValueSchema for each in gc.get_objects())

    before = kept()
    split_calls(style, CALLS[style] % (ARGUMENTS[style] % "seen_once"), tools)
    assert kept() == before
