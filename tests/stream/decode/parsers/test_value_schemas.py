"""Types of arguments, looked up in the JSON schemas of a request's tools."""

from __future__ import annotations

import gc
import json
import pickle

import pytest
from splitting import split_calls

from tokenweir.stream.decode.parsers.blocks.coercion import json_of
from tokenweir.stream.decode.parsers.schema_document import MAX_STEPS, MAX_STEPS_IN_ALL
from tokenweir.stream.decode.parsers.schemas import tool_schemas_of
from tokenweir.stream.decode.parsers.value_schemas import ValueSchema

NUMBER, TEXT, FLAG = {"type": "integer"}, {"type": "string"}, {"type": "boolean"}


def argument(declared, **root):
    return tool_schemas_of({"f": {"properties": {"a": declared}, **root}}).arguments("f").member("a")


def types(declared, **root):
    return argument(declared, **root).types


def arguments_of(**schema):
    return tool_schemas_of({"f": schema}).arguments("f")


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
    "declared", [None, 1, "string", [], {}, {"type": 3}, {"$ref": "#/x"}, {"anyOf": 1}, {"enum": 5}, True, False]
)
def test_what_declares_nothing_gives_no_types(declared):
    assert types(declared) == frozenset()
    assert arguments_of().member("a").types == arguments_of(properties=1).member("a").types == frozenset()
    assert tool_schemas_of({}).arguments("f").member("a").types == frozenset()


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({"type": ["string", "integer"], "allOf": [TEXT]}, {"string"}),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]}, {"integer"}),
        ({"type": "number", "allOf": [NUMBER]}, {"integer"}),
        ({"type": ["string", "integer"], "enum": [1, 2]}, {"integer"}),
        ({"type": "string", "enum": [1, 2]}, {"string"}),
        ({"type": ["integer", "string"], "anyOf": [NUMBER, {"minLength": 2}]}, {"integer", "string"}),
        ({"anyOf": [TEXT, {}]}, {"string"}),
        ({"allOf": [TEXT, NUMBER]}, {"string", "integer"}),
        ({"allOf": [TEXT], "nullable": True}, {"string", "null"}),
        ({"nullable": True}, set()),
        ({"if": {"const": 1}, "then": NUMBER, "else": TEXT}, {"integer", "string"}),
        ({"type": ["string", "null"], "if": {"const": None}, "then": {"type": "null"}}, {"string", "null"}),
        ({"if": {"type": "string"}, "then": NUMBER}, {"integer"}),
        ({"then": NUMBER}, set()),
        ({"not": TEXT}, set()),
        ({"type": "INTEGER"}, {"integer"}),
        ({"type": ["STRING", "Null"]}, {"string", "null"}),
    ],
)
def test_what_holds_together_is_intersected_and_alternatives_are_united(declared, expected):
    assert types(declared) == expected


DEFS = {"b/c": FLAG, "d~e": FLAG, "f%g": FLAG, "h i": FLAG, "ü": FLAG, "": FLAG, "list": {"anyOf": [TEXT, FLAG]}}


@pytest.mark.parametrize(
    "reference",
    [
        *("#/$defs/b~1c", "#/$defs/d~0e", "#/$defs/f%25g", "#/$defs/f%g", "#/$defs/h%20i", "#/$defs/h i"),
        *("#/$defs/%C3%BC", "#/$defs/ü", "#/$defs/", "#/$defs/list/anyOf/1", "#/%24defs/b~1c"),
    ],
)
def test_pointers_have_the_escapes_of_json_pointers_and_uris(reference):
    assert types({"$ref": reference}, **{"$defs": DEFS}) == {"boolean"}


@pytest.mark.parametrize(
    ("declared", "root"),
    [
        ({"$ref": "#/definitions/x"}, {"definitions": {"x": FLAG}}),
        ({"$ref": "#/properties/b"}, {"properties": {"a": {"$ref": "#/properties/b"}, "b": FLAG}}),
        ({"$ref": "#/components/schemas/x"}, {"components": {"schemas": {"x": FLAG}}}),
        ({"$ref": "#x"}, {"$defs": {"any": {"$anchor": "x", **FLAG}}}),
        ({"$ref": "#x"}, {"definitions": {"any": {"$id": "#x", **FLAG}}}),
        ({"$dynamicRef": "#x"}, {"$defs": {"any": {"$dynamicAnchor": "x", **FLAG}}}),
        ({"$dynamicRef": "#/$defs/x"}, {"$defs": {"x": FLAG}}),
        ({"$ref": "https://x.org/s#/$defs/x"}, {"$id": "https://x.org/s", "$defs": {"x": FLAG}}),
        ({"$ref": "s#/$defs/x"}, {"$id": "https://x.org/s", "$defs": {"x": FLAG}}),
        ({"$ref": "flag"}, {"$defs": {"x": {"$id": "flag", **FLAG}}}),
        ({"$ref": "https://x.org/flag"}, {"$id": "https://x.org/s", "$defs": {"x": {"$id": "flag", **FLAG}}}),
        ({"$ref": "flag#a"}, {"$defs": {"x": {"$id": "flag", "$defs": {"y": {"$anchor": "a", **FLAG}}}}}),
        ({"$ref": "r"}, {"$defs": {"f": TEXT, "x": {"$id": "r", "$ref": "#/$defs/f", "$defs": {"f": FLAG}}}}),
        ({"$ref": "#/$defs/x", "description": "beside it"}, {"$defs": {"x": FLAG}}),
        ({"$ref": "#/$defs/x", "type": "boolean"}, {"$defs": {"x": {"type": ["string", "boolean"]}}}),
    ],
)
def test_references_are_resolved_in_every_spelling(declared, root):
    assert types(declared, **root) == {"boolean"}


@pytest.mark.parametrize(
    "reference", [1, None, "x", "#x", "#/a/b/c", "http://[", "#/$defs/x/9", "#/" + "a" * 5000, "%"]
)
def test_references_that_lead_nowhere_declare_nothing(reference):
    assert types({"$ref": reference}, **{"$defs": {"x": [TEXT]}}) == set()


def test_a_dynamic_reference_takes_the_outermost_anchor():
    inner = {"$id": "list", "$dynamicRef": "#item", "$defs": {"any": {"$dynamicAnchor": "item", **TEXT}}}
    outer = {"mine": {"$dynamicAnchor": "item", **NUMBER}, "list": inner}
    assert types({"$ref": "list"}, **{"$defs": outer}) == {"integer"}
    assert types({"$ref": "list"}, **{"$defs": {"list": inner}}) == {"string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"properties": {"a": FLAG}}]},
        {"anyOf": [{"properties": {"a": FLAG}}, {"properties": {"b": TEXT}}]},
        {"properties": {"b": TEXT}, "additionalProperties": FLAG},
        {"additionalProperties": TEXT, "allOf": [{"properties": {"a": FLAG}}]},
        {"unevaluatedProperties": FLAG},
        {"patternProperties": {"^a": FLAG, "^b": TEXT}, "additionalProperties": TEXT},
        {"patternProperties": {"^(x|a)+$": FLAG}},
        {"patternProperties": {".*": FLAG}},
        {"if": {"properties": {"a": TEXT}}, "then": {"properties": {"a": FLAG}}},
        {"if": {"properties": {"b": {"const": 1}}}, "else": {"properties": {"a": FLAG}}},
        {"dependentSchemas": {"b": {"properties": {"a": FLAG}}}},
        {"dependencies": {"b": {"properties": {"a": FLAG}}, "c": ["d"]}},
        {"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": FLAG}}}},
        {"properties": {"a": {"type": ["string", "boolean"]}}, "allOf": [{"properties": {"a": FLAG}}]},
    ],
)
def test_members_are_declared_in_every_spelling(schema):
    assert arguments_of(**schema).member("a").types == {"boolean"}


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("^a$", "a", True),
        ("^a$", "ab", False),
        ("a$", "ba", True),
        ("b", "abc", True),
        ("^.*c$", "abc", True),
        ("^a.*$", "abc", True),
        ("^a", "ba", False),
    ],
)
def test_patterns_of_plain_text_are_compared(pattern, name, matches):
    schema = arguments_of(patternProperties={pattern: FLAG})
    assert schema.member(name).types == ({"boolean"} if matches else set())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"items": FLAG}, [{"boolean"}, {"boolean"}]),
        ({"prefixItems": [TEXT], "items": FLAG}, [{"string"}, {"boolean"}]),
        ({"items": [TEXT], "additionalItems": FLAG}, [{"string"}, {"boolean"}]),
        ({"prefixItems": [TEXT], "unevaluatedItems": FLAG}, [{"string"}, {"boolean"}]),
        ({"prefixItems": [TEXT]}, [{"string"}, set()]),
        ({"allOf": [{"items": FLAG}]}, [{"boolean"}, {"boolean"}]),
    ],
)
def test_elements_are_declared_in_every_spelling(schema, expected):
    assert [argument(schema).element(index).types for index in (0, 1)] == expected
    assert argument(schema).element(5000).types == expected[1]


def test_trees_have_the_types_of_their_nodes_at_every_depth():
    node = {"properties": {"name": TEXT, "children": {"items": {"$ref": "#/$defs/node"}}}}
    schema = arguments_of(**{"$ref": "#/$defs/node", "$defs": {"node": node}})
    for _ in range(50):
        schema = schema.member("children").element(3)
    assert schema.member("name").types == {"string"}


def test_schemas_that_contain_themselves_end():
    assert types({"$ref": "#/properties/a"}) == frozenset()
    root = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 50 + [{"type": "integer"}]}}}
    assert types({"$ref": "#/$defs/a"}, **root) == {"integer"}


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


CALLS = {
    "qwen3-coder": "<tool_call>\n<function=f>\n%s</function>\n</tool_call>",
    "glm": "<tool_call>f\n%s</tool_call>",
    "minimax-m2": '<minimax:tool_call>\n<invoke name="f">\n%s</invoke>\n</minimax:tool_call>',
    "minimax-m3": ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">%s]<]minimax[>[</invoke>]<]minimax[>[</tool_call>',
    "gemma4": "<|tool_call>call:f{%s}<tool_call|>",
    "functiongemma": "<start_function_call>call:f{%s}<end_function_call>",
}
ARGUMENTS = {
    "qwen3-coder": "<parameter=%s>\n7\n</parameter>\n",
    "glm": "<arg_key>%s</arg_key>\n<arg_value>7</arg_value>\n",
    "minimax-m2": '<parameter name="%s">7</parameter>\n',
    "minimax-m3": "]<]minimax[>[<%s>7]<]minimax[>[</{}>",
    "gemma4": "%s:7,",
    "functiongemma": "%s:<escape>7<escape>,",
}


@pytest.mark.parametrize("style", CALLS)
def test_an_answer_visits_each_schema_once_however_it_comes(visits, style):
    text = CALLS[style] % "".join((ARGUMENTS[style] % name).replace("{}", name) for name in ("a", "b", "a"))
    schema = {"properties": {name: {"anyOf": [Visited(NUMBER) for _ in range(300)]} for name in "ab"}}
    got = split_calls(style, text, {"f": schema})
    assert json.loads(got["calls"][0][1]) == {"a": 7, "b": 7}
    assert visits() <= 3 * 600


@pytest.mark.parametrize(
    "declared",
    [
        {"type": ["integer", "null"]},
        {"anyOf": [NUMBER, {"type": "null"}]},
        {"type": "integer", "nullable": True},
        {"type": "null"},
        {"enum": [1, None]},
        {"const": None},
        {"type": ["array", "null"]},
    ],
)
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
