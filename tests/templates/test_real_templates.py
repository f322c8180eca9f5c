"""Real templates render as under transformers' rules, restated here with nothing but Jinja."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from functools import cache

import pytest
from jinja2 import nodes
from jinja2.exceptions import TemplateError as JinjaError
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import ChatTemplate

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
CLOCK = datetime(2026, 11, 20, 9, 30)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tells the weather & more: <b>now</b> or 'later'.",
            "parameters": {
                "type": "object",
                "properties": {"città": {"type": "string", "description": "Where."}},
                "required": ["città"],
            },
        },
    }
]


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def calling(arguments):
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    return [
        user("Weather?"),
        assistant("", tool_calls=[call]),
        {"role": "tool", "name": "weather", "tool_call_id": "abcdefghi", "content": "sunny, 21 °C"},
    ]


SYSTEM = {"role": "system", "content": "Be brief."}
TURNS = [user("Hi"), assistant("Hello!"), user("  And now?\n")]
CONVERSATIONS = {
    "plain": ([user("Hi there")], {}),
    "no generation prompt": (TURNS, {"add_generation_prompt": False}),
    "system": ([SYSTEM, *TURNS], {}),
    "ends with the assistant": ([SYSTEM, *TURNS[:2]], {"add_generation_prompt": False}),
    "thinking in the content": ([user("2+2?"), assistant("<think>\neasy\n</think>\n\n4"), user("Why?")], {}),
    "thinking in a field": ([user("2+2?"), assistant("4", reasoning_content="easy"), user("Why?")], {}),
    "thinking on": (TURNS, {"enable_thinking": True, "thinking": True}),
    "thinking off": (TURNS, {"enable_thinking": False, "thinking": False}),
    "unicode": ([user("naïve 🙂👩‍👩‍👧 ١٢٣ 中文 e\u0301"), assistant("日本語"), user("\u200d\u2028")], {}),
    "jinja in the text": ([user("{{ 7*7 }} {% raw %} {# x #}")], {}),
    "brackets": ([user('if a < b and c[1] > 2 then <b>x</b> & "y" |z|')], {}),
    "mentions tokens": ([user("What do <|im_end|>, <s>, [INST] and <|eot_id|> mean?")], {}),
    "tools": ([user("Weather?")], {"tools": TOOLS}),
    "tool result": ([*calling({"città": "Bern < Zürich"}), user("Thanks")], {"tools": TOOLS}),
    "low effort": ([user("Hi")], {"reasoning_effort": "low", "date_string": "1 Jan 2026"}),
    "document": ([user("Hi")], {"documents": [{"title": "T [1]", "text": "x < y", "content": "x"}]}),
}


class Generation(Extension):
    tags = frozenset({"generation"})

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_run"), [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


def raise_exception(message):
    raise JinjaError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@cache
def transformers_template(source):
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = CLOCK.strftime
    return environment.from_string(source)


@cache
def our_template(source, guard):
    return ChatTemplate(source, special_tokens=SPECIAL, guard=guard, clock=lambda: CLOCK)


def test_all_templates_are_tested(data, template_names):
    assert sorted(path.stem for path in data("templates").glob("*.jinja")) == template_names


@pytest.mark.parametrize("case", CONVERSATIONS)
def test_renders_as_transformers(source, case):
    messages, variables = CONVERSATIONS[case]
    settings = {"add_generation_prompt": True, "tools": None, "documents": None} | variables
    try:
        expected = transformers_template(source).render(messages=messages, **SPECIAL, **settings)
    except (JinjaError, TypeError) as error:
        with pytest.raises(TemplateError) as refusal:
            our_template(source, True).render(messages, **variables)
        assert str(error) in str(refusal.value)
        return
    assert our_template(source, False).render(messages, **variables).text == expected
    prompt = our_template(source, True).render(messages, **variables)
    assert prompt.text == expected
    assert "".join(segment.text for segment in prompt.segments) == expected


def test_how_many_conversations_render(data, template_names):
    """Most do; the others are refused by the templates themselves (no system role, tools wanted...)."""
    rendered = 0
    for name in template_names:
        for messages, variables in CONVERSATIONS.values():
            with suppress(TemplateError):
                our_template(data(f"templates/{name}.jinja").read_text("utf-8"), False).render(messages, **variables)
                rendered += 1
    print(f"{rendered} of {len(template_names) * len(CONVERSATIONS)} conversations render")  # noqa: T201
    assert rendered >= 340


def test_content_parts(source):
    """Parts reach the templates that loop over them as they are, and the others as one string."""
    texts = ["Look: a < b", "and [c]"]
    parts = [{"type": "text", "text": text} for text in texts]
    template = our_template(source, True)
    content = parts if template.content_format == "parts" else "\n".join(texts)
    settings = {"add_generation_prompt": True, "documents": None, "tools": TOOLS}
    expected = transformers_template(source).render(messages=[user(content)], **SPECIAL, **settings)
    prompt = template.render([user(parts)], tools=TOOLS)
    assert prompt.text == expected
    assert prompt.text.index(texts[0]) < prompt.text.index(texts[1])
