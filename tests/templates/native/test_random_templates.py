"""Random templates and conversations: the engine agrees with transformers, and its origins are those of the input."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import example, given, reject
from jinja_oracle import expected
from native_rendering import as_json, check_origins, outcome, rendered
from random_conversations import conversations
from template_files import template_files
from template_grammar import expressions, templates
from template_probes import VARIABLES

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template

FILES = template_files()


@cache
def loaded(name):
    return Template(FILES[name])


def check(source):
    reference = expected(source, VARIABLES)
    if " AT 0X" in (reference.text or "").upper():
        reject()  # Python prints a generator with its address, and the engine without
    forms = (VARIABLES, as_json(VARIABLES))
    for variables in forms:
        ours = outcome(source, variables)
        if "of more than 64 bits" in (ours.error or ""):
            reject()
        assert (ours.text, ours.generation) == (reference.text, reference.generation), (reference.error, ours.error)
    if reference.text is not None:
        template = Template(source)
        one, other = (rendered(template, variables) for variables in forms)
        check_origins(one, VARIABLES)
        assert (one.spans, one.steps) == (other.spans, other.steps)


@given(expressions)
def test_expressions(expression):
    check("{{ " + expression + " }}")


@given(templates)
def test_templates(source):
    check(source)


@given(conversations())
@example({"messages": [{"role": "user", "content": "x"}]})
@pytest.mark.parametrize("name", FILES)
def test_conversations(name, variables):
    template = loaded(name)
    reference = expected(FILES[name], variables)
    encoded = as_json(variables)
    for form in (variables, encoded):
        ours = outcome(template, form)
        assert (ours.text, ours.generation) == (reference.text, reference.generation), (reference.error, ours.error)
    if reference.text is not None:
        one, other = rendered(template, variables), rendered(template, encoded)
        check_origins(one, variables)
        assert (one.spans, one.steps) == (other.spans, other.steps)


@given(conversations())
@pytest.mark.parametrize("name", FILES)
def test_text_that_nobody_wrote_before_is_the_users(name, variables):
    """Characters of the input that no template has are in spans of the input, whatever is done to them."""
    marked = taint(variables)
    try:
        result = rendered(loaded(name), marked)
    except TemplateError:
        return
    at = 0
    encoded = result.text.encode()
    for start, end, origin, _, _ in result.spans:
        assert start == at
        at = end
        if result.origin(origin) in ("template", "engine"):
            assert not any("\ue000" <= c <= "\uf8ff" for c in encoded[start:end].decode())


def taint(value):
    """Move the letters of texts under content, arguments and descriptions to the private use area."""
    if isinstance(value, str):
        return "".join(chr(0xE000 + ord(c)) if c.isascii() and c.isalnum() else c for c in value)
    if isinstance(value, list):
        return [taint(item) for item in value]
    if isinstance(value, dict):
        kept = ("role", "type", "bos_token", "eos_token")
        return {key: item if key in kept else taint(item) for key, item in value.items()}
    return value
