from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tokenweir.templates.styles.tools import TOOL_FAMILIES, TOOL_STYLES, tool_style_of


def test_names_and_families_find_their_style():
    assert tool_style_of("hermes") is tool_style_of("Qwen3") is TOOL_STYLES["hermes"]
    assert tool_style_of("deepseek_v31") is TOOL_STYLES["deepseek"]
    assert tool_style_of(TOOL_STYLES["llama3"]).bare
    assert set(TOOL_FAMILIES.values()) <= set(TOOL_STYLES)
    assert not set(TOOL_FAMILIES) & set(TOOL_STYLES)


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"^unknown tool style 'xml'; known are harmony, "):
        tool_style_of("xml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"opens": ()}, r"tool style 'hermes': nothing opens a block, or the empty text does: \(\)"),
        ({"opens": ("",)}, r"tool style 'hermes': nothing opens a block, or the empty text does: \('',\)"),
        ({"header": "(a)"}, r"tool style 'hermes': header '\(a\)' has no group 'name'"),
        ({"header": "("}, r"tool style 'hermes': header '\(' is no regular expression: missing \)"),
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
