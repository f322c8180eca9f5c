"""Styles that every template of the data shows: the style of its thinking, that of its calls, and when its prompt opens thinking."""

from __future__ import annotations

import pytest
from case_tables import cases

from tokenweir import ChatTemplate, Tokenizer
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.detection import find_splitter, read_prompt
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import STYLES

CASES = cases(__file__)

SHOWN = CASES["shown"]
"""The styles of thinking and of calls, and whether thinking has begun where the answer begins: in every prompt, in those
that ask for it, in all but those that ask for none, or (an empty text) in none."""

OPENED = {"": (False, False, False), "asked": (False, True, False), "unless refused": (True, True, False)}
OPENED["always"] = (True, True, True)
ASKED = ({}, {"enable_thinking": True, "thinking": True}, {"enable_thinking": False, "thinking": False})

PARAMETERS = {"type": "object", "properties": {"a": {"type": "string", "description": ""}}}
TOOLS = [{"type": "function", "function": {"name": "f", "description": "", "parameters": PARAMETERS}}]


def tokenizer_of(template):
    """The embedded vocabulary with a template's control tokens."""
    tok = Tokenizer.default()
    new = [token for token in template.control_tokens if tok.token_to_id(token) is None]
    return tok.with_added_tokens([AddedToken(token, special=True) for token in new]) if new else tok


@pytest.mark.parametrize(("name", "shown"), SHOWN.items())
def test_real_templates_show_styles_and_start_state(name, shown, data):
    template = ChatTemplate.from_file(data(f"{name}.jinja"), special_tokens={"bos_token": "<s>"})
    thinking, calls, opened = shown
    assert (template.reasoning, template.tool_style) == (thinking, calls)
    tok = tokenizer_of(template)
    style = STYLES[thinking] if thinking else None
    tools = TOOLS if "tools" in template.variables else None
    for variables, inside in zip(ASKED, OPENED[opened], strict=True):
        prompt = template.render([{"role": "user", "content": "Hello"}], tools=tools, **variables)
        ids = prompt.encode(tok)
        assert read_prompt(tok, ids, style).inside == inside
        if style is not None:
            ending = prompt.text.rstrip().removesuffix(style.label)
            assert ending.endswith(tuple(opener.rstrip() for opener in style.openers)) == inside
            splitter, _ = find_splitter(tok, ids, style)
            assert splitter.channel is (Channel.REASONING if inside else Channel.ANSWER)


def test_every_template_of_the_data_is_in_the_table(data):
    folders = ("templates", "templates-more")
    assert {f"{folder}/{path.stem}" for folder in folders for path in data(folder).glob("*.jinja")} == set(SHOWN)
