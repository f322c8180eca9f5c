"""A choice of tools reaches the engine or the template that hears it, and is refused where none does."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from jsonschema import Draft202012Validator

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.templates.tool_choice import call_list_schema, resolve_tool_choice

CASES = cases(__file__)

DEAF = ChatTemplate("{{ tools | length if tools else 0 }}")
HEARING = ChatTemplate(
    "{{ tools | map(attribute='function.name') | join(' ') }}|{{ tool_choice }}|{{ parallel_tool_calls }}"
)
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
ONLY_B = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]}


def rendered(template, tool_choice, parallel=None, tools=TOOLS):
    resolved = resolve_tool_choice(template, tools, tool_choice, parallel)
    assert resolved.json_schema is None
    return template.render([], tools=resolved.tools, **resolved.variables).text


@pytest.mark.parametrize(("choice", "parallel", "text"), CASES["given"])
def test_a_template_that_reads_the_choice_is_given_it(choice, parallel, text):
    assert rendered(HEARING, json.loads(choice), json.loads(parallel)) == text


@pytest.mark.parametrize(
    ("choice", "parallel", "text"),
    [(None, None, "2"), ("auto", True, "2"), ("auto", False, "2"), ("none", None, "0"), ("none", True, "0")],
)
def test_what_every_template_can_honour(choice, parallel, text):
    assert rendered(DEAF, choice, parallel) == text


@pytest.mark.parametrize(("choice", "parallel", "message"), CASES["refused"])
def test_what_nobody_would_hear_is_refused(choice, parallel, message):
    with pytest.raises(TemplateError) as error:
        rendered(DEAF, json.loads(choice), json.loads(parallel))
    assert message in str(error.value)


def test_without_tools():
    assert rendered(DEAF, "none", False, tools=None) == "0"
    with pytest.raises(TemplateError, match="^tool_choice requires a call of no tools$"):
        rendered(DEAF, "required", tools=None)


def test_tools_that_templates_would_refuse_are_refused():
    deep = {}
    for _ in range(900):
        deep = {"items": deep}
    for tools, message in (
        ([{"name": "f", "parameters": deep}], r"^tools\[0\]\.parameters\.items.* is nested more than 64 levels deep$"),
        (5, "^tools must be a list, not int: write "),
    ):
        with pytest.raises(TemplateError, match=message):
            resolve_tool_choice(DEAF, tools, "required", None, forces=True)


# -- an engine that honours a JSON schema -----------------------------------------------------------------------------

WEATHER = {
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/place"}, "$ref": {"type": "integer"}},
        "required": ["at"],
        "additionalProperties": False,
        "$defs": {
            "place": {"type": "object", "properties": {"next": {"$ref": "#/$defs/place"}, "x": {"type": "number"}}}
        },
    },
}
CALLS = [{"type": "function", "function": WEATHER}, {"type": "function", "function": {"name": "now"}}]


@pytest.mark.parametrize("template", [DEAF, HEARING])
@pytest.mark.parametrize(
    ("choice", "parallel", "names", "most"),
    [
        ("required", None, ["weather", "now"], None),
        ("required", False, ["weather", "now"], 1),
        ({"type": "function", "name": "now"}, None, ["now"], 1),
    ],
)
def test_an_engine_is_held_to_a_list_of_calls(template, choice, parallel, names, most):
    resolved = resolve_tool_choice(template, CALLS, choice, parallel, forces=True)
    items = resolved.json_schema["items"].get("anyOf", [resolved.json_schema["items"]])
    assert [item["properties"]["name"]["enum"] for item in items] == [[name] for name in names]
    assert resolved.json_schema.get("maxItems") == most
    assert resolved.variables.get("tool_choice") == ("required" if template is HEARING else None)


@pytest.mark.parametrize(("calls", "fits"), CASES["what_fits_the_schema_of_a_list_of_calls"])
def test_what_fits_the_schema_of_a_list_of_calls(calls, fits):
    schema = call_list_schema(CALLS, one=False)
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid(calls) is fits


def test_references_lead_to_where_the_parameters_stand():
    schema = call_list_schema(CALLS, one=True)
    place = schema["items"]["anyOf"][0]["properties"]["arguments"]["$ref"]
    assert place == "#/$defs/call0"
    parameters = schema["$defs"]["call0"]
    assert parameters["properties"]["at"]["$ref"] == "#/$defs/call0/$defs/place"
    assert parameters["properties"]["$ref"] == {"type": "integer"}  # a property, and no reference
    assert WEATHER["parameters"]["properties"]["at"] == {"$ref": "#/$defs/place"}
