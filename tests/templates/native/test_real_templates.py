"""Templates of real models over conversations of every shape: the text, or both engines refuse."""

from __future__ import annotations

import os

import pytest
from chat_conversations import CONVERSATIONS
from jinja_oracle import expected
from native_rendering import as_json, check_origins, outcome, rendered
from template_files import template_files

from tokenweir.templates._native import Template

FILES = template_files()


def test_there_are_templates(data):
    assert len(FILES) >= 36, data("templates")
    assert len(CONVERSATIONS) >= 70


def test_more_templates():
    folder = os.environ.get("TOKENWEIR_TEMPLATES")
    if not folder:
        pytest.skip("TOKENWEIR_TEMPLATES names no folder of more templates")
    assert len(FILES) > 36, folder


@pytest.mark.parametrize("name", FILES)
def test_renders_as_transformers(name, record_property):
    source = FILES[name]
    template = Template(source)
    equal = refused = 0
    differences = {}
    for case, given in CONVERSATIONS.items():
        for prompted in (True, False):
            variables = given | {"add_generation_prompt": prompted}
            reference = expected(source, variables)
            for form in (variables, as_json(variables), as_json(variables, ascii_only=True)):
                ours = outcome(template, form)
                if (ours.text, ours.generation) != (reference.text, reference.generation):
                    differences[case, prompted, type(form).__name__] = (reference, ours)
                elif ours.text is None:
                    refused += 1
                else:
                    equal += 1
            if ours.text is not None:
                check_origins(rendered(template, variables), variables)
    record_property("equal", equal)
    record_property("refused", refused)
    assert differences == {}


@pytest.mark.parametrize("name", FILES)
def test_objects_and_json_have_the_same_origins(name):
    template = Template(FILES[name])
    for given in CONVERSATIONS.values():
        variables = given | {"add_generation_prompt": True}
        if outcome(template, variables).text is None:
            continue
        one, other = rendered(template, variables), rendered(template, as_json(variables))
        assert one.spans == other.spans
        assert one.steps == other.steps
        assert [one.origin(span[2]) for span in one.spans] == [other.origin(span[2]) for span in other.spans]
