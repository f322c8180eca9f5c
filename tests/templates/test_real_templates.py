"""Real templates render as in transformers, apart from the differences that `ChatTemplate` documents."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from functools import cache

import pytest
from case_tables import cases
from jinja2 import nodes
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.meta import find_undeclared_variables
from transformers.utils.chat_template_utils import _compile_jinja_template

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.verify.conversations import CONVERSATIONS
from tokenweir.verify.prompts import CLOCK, TransformersTemplate, in_taken_form

CASES = cases(__file__)

TOOLS = CONVERSATIONS["tools"][1]["tools"]
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


@pytest.fixture
def oracle():
    """transformers' own rendering, at a fixed time."""
    pytest.importorskip("transformers", exc_type=ImportError)
    return lambda source, messages, variables: TransformersTemplate(source, SPECIAL).render(messages, variables)


def calling(arguments):
    """Return a question, a call, and its result."""
    question, call, result = deepcopy(CONVERSATIONS["no arguments"][0])
    call["tool_calls"][0]["function"]["arguments"] = arguments
    return [question, call, result]


@cache
def our_template(source, guard):
    return ChatTemplate(source, special_tokens=SPECIAL, guard=guard, clock=lambda: CLOCK)


def test_all_templates_are_tested(data, template_paths):
    assert len(CONVERSATIONS) >= 33
    found = [
        f"{folder}/{path.name}" for folder in ("templates", "templates-more") for path in data(folder).glob("*.jinja")
    ]
    assert sorted(found) == sorted(template_paths)


def test_variables_are_those_that_jinja_finds(source):
    environment = _compile_jinja_template("").environment
    tree = environment.parse(source)
    found = find_undeclared_variables(tree) - environment.globals.keys()
    ours = our_template(source, True).variables
    assert ours <= found
    # Jinja also counts names that each branch of an `if` sets before they are read.
    assert found - ours <= {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store"}


def test_renders_as_transformers(source, oracle):
    unguarded, guarded = our_template(source, False), our_template(source, True)
    differences = {}
    rendered = 0
    for case, (messages, variables) in CONVERSATIONS.items():
        try:
            expected = oracle(source, in_taken_form(unguarded, messages), variables)
        except (JinjaError, TypeError, ValueError, LookupError, AttributeError):
            expected = None
        for template in (unguarded, guarded):
            try:
                prompt = template.render(messages, **variables)
            except TemplateError as error:
                ours, shown = None, str(error)
            else:
                ours = shown = prompt.text
                assert "".join(segment.text for segment in prompt.segments) == ours
            if ours != expected:
                differences[case, template is guarded] = (expected, shown)
        rendered += expected is not None
    assert differences == {}
    assert rendered >= 12


def test_arguments_as_text(source, oracle):
    """A client's JSON text becomes an object, except for templates that take text."""
    arguments = {"città": "Bern < Zürich", "n": 1}
    template = our_template(source, True)
    expected = []
    for given in (arguments, json.dumps(arguments)):
        with suppress(JinjaError, TypeError, AttributeError):
            expected.append(oracle(source, in_taken_form(template, calling(given)), {"tools": TOOLS}))
    try:
        ours = template.render(calling(json.dumps(arguments)), tools=TOOLS).text
    except TemplateError:
        assert expected == []  # the template has no calls
    else:
        assert ours in expected


def test_arguments_as_an_object(source, oracle):
    """A template that takes only text gets text instead of an object."""
    template, question = our_template(source, True), calling({"città": None})
    try:
        made = oracle(source, question, {"tools": TOOLS})
    except (JinjaError, TypeError, AttributeError):
        made = None
    if template.argument_form == "text":
        assert made is None or '{"città": null}' not in made
        assert '{"città": null}' in template.render(question, tools=TOOLS, tidy=True).text
    elif made is not None:
        assert template.render(question, tools=TOOLS).text == made


def test_content_parts(source, oracle):
    """Parts reach the templates that loop over them as they are, and the others as one string."""
    texts = ["Look: a < b", "and [c]"]
    parts = [{"type": "text", "text": text} for text in texts]
    template = our_template(source, True)
    prompt = template.render([{"role": "user", "content": parts}], tools=TOOLS)
    assert prompt.text == oracle(
        source, in_taken_form(template, [{"role": "user", "content": parts}]), {"tools": TOOLS}
    )
    assert prompt.text.index(texts[0]) < prompt.text.index(texts[1])


@pytest.mark.parametrize(("file", "stable"), CASES["growing_alike"])
def test_which_templates_write_a_growing_conversation_alike(data, file, stable):
    source = data(f"{file}.jinja").read_text("utf-8")
    assert ChatTemplate(source, special_tokens=SPECIAL).is_prefix_stable is stable
