"""A choice of tools reaches the template that reads it, and is refused by others."""

from __future__ import annotations

import pytest

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import ChatTemplate
from tokenweir.templates.tool_choice import honour_tool_choice

DEAF = ChatTemplate("{{ tools | length if tools else 0 }}")
HEARING = ChatTemplate(
    "{{ tools | map(attribute='function.name') | join(' ') }}|{{ tool_choice }}|{{ parallel_tool_calls }}"
)
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]


def rendered(template, tool_choice, parallel=None, tools=TOOLS):
    shown, variables = honour_tool_choice(template, tools, tool_choice, parallel)
    return template.render([], tools=shown, **variables).text


@pytest.mark.parametrize(
    ("choice", "parallel", "text"),
    [
        (None, None, "a b||"),
        ("auto", True, "a b||True"),
        ("none", None, "a b|none|"),
        ("required", False, "a b|required|False"),
        ({"type": "function", "function": {"name": "b"}}, None, "b|required|"),
        ({"type": "function", "name": "a"}, None, "a|required|"),
    ],
)
def test_a_template_that_reads_the_choice_is_given_it(choice, parallel, text):
    assert rendered(HEARING, choice, parallel) == text


@pytest.mark.parametrize(
    ("choice", "parallel", "text"), [(None, None, "2"), ("auto", True, "2"), ("none", None, "0"), ("none", True, "0")]
)
def test_what_every_template_can_honour(choice, parallel, text):
    assert rendered(DEAF, choice, parallel) == text


@pytest.mark.parametrize(
    ("choice", "parallel", "message"),
    [
        ("required", None, "tool_choice='required' cannot be honoured: the chat template 'default' does not read it"),
        ({"type": "function", "name": "a"}, None, "cannot be honoured"),
        ("auto", False, "parallel_tool_calls=False cannot be honoured"),
        ({"type": "function", "name": "c"}, None, "tool_choice names 'c', which is none of the 2 tools"),
        ("always", None, "tool_choice 'always' is not auto, none, required or one function"),
        ({"type": "function"}, None, "is not auto, none, required or one function"),
    ],
)
def test_what_nobody_would_hear_is_refused(choice, parallel, message):
    with pytest.raises(TemplateError) as error:
        rendered(DEAF, choice, parallel)
    assert message in str(error.value)


def test_without_tools():
    assert rendered(DEAF, "none", False, tools=None) == "0"
    with pytest.raises(TemplateError, match="^tool_choice requires a call of no tools$"):
        rendered(DEAF, "required", tools=None)
