from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tokenweir.templates.tool_styles import (
    TOOL_FAMILIES,
    TOOL_STYLES,
    shown_tools,
    style_of_answer,
    tool_style_of,
)


def test_names_and_families_find_their_style():
    assert tool_style_of("hermes") is tool_style_of("Qwen3") is TOOL_STYLES["hermes"]
    assert tool_style_of("deepseek_v31") is TOOL_STYLES["deepseek"]
    assert tool_style_of(TOOL_STYLES["llama3"]).bare
    assert set(TOOL_FAMILIES.values()) <= set(TOOL_STYLES)
    assert not set(TOOL_FAMILIES) & set(TOOL_STYLES)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"^unknown tool style 'xml'; known are harmony, deepseek, kimi-k2, "):
        tool_style_of("xml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opens": ()}, r"tool style 'hermes': nothing opens a block, or the empty text does: \(\)"),
        ({"opens": ("",)}, r"tool style 'hermes': nothing opens a block, or the empty text does: \('',\)"),
        ({"header": "(a)"}, r"tool style 'hermes': header '\(a\)' has no group 'name'"),
    ],
)
def test_a_style_that_no_text_could_have_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(TOOL_STYLES["hermes"], **change)


@pytest.mark.parametrize("style", TOOL_STYLES.values(), ids=lambda style: style.name)
def test_a_text_that_is_the_beginning_of_another_comes_after_it(style):
    marks = [*style.opens, style.closes, style.call_opens, style.call_closes, *style.tails, *style.separators]
    marks = list(dict.fromkeys(filter(None, marks)))
    for place, mark in enumerate(marks):
        assert not any(other.startswith(mark) for other in marks[place + 1 :])
    assert re.compile(style.header)


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("List of tools: <|tool_list_start|>[", "lfm2"),
        ("List of tools: [", "lfm2"),
        ("<tool_call>", "hermes"),
        ("]<]minimax[>[<tool_call>", "minimax-m3"),
        ("<tool_call> <function= <parameter=", "qwen3-coder"),
        ('{"name": function name, "parameters": dictionary of argument name and its value}', "llama3"),
        ("Respond in this format:\n>>>${recipient}\n${content}", "functionary-v3.2"),
        ("make calls in a single JSON array: \n\n[", "xlam"),
        ("nothing of the kind", None),
    ],
)
def test_a_text_shows_its_style(text, style):
    assert shown_tools(text) == style


def test_without_tools_only_markup_of_every_answer_is_looked_for():
    assert style_of_answer("hermes", [{}]) == "hermes"
    assert style_of_answer(None, [{}]) == "auto"
    assert style_of_answer("hermes", None) is style_of_answer(None, None) is None
    assert style_of_answer("functionary-v3.2", None) == "functionary-v3.2"
