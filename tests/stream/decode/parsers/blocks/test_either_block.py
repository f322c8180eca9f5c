"""Blocks of styles that have JSON beside a form of their own."""

from __future__ import annotations

import json

import pytest
from splitting import check_passing, run, split_calls, told

from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.tools import TOOL_STYLES

STYLES = [style for style in TOOL_STYLES.values() if style.or_json and style.closes]
CALL = {"name": "f", "arguments": {"x": ["]", 1]}}


def write(style, text):
    opened = style.opens[0] + (style.call_opens if style.call_opens == "<ifm|tool_call>" else "")
    closed = style.call_closes * (style.call_opens == "<ifm|tool_call>") + style.closes
    return f"So.{opened}{text}{closed}"


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("spaced", ["", "\n  "])
def test_a_block_may_be_json(style, spaced):
    text = write(style, spaced + (json.dumps([CALL, CALL]) if style.lists else json.dumps(CALL)) + spaced)
    whole = run(ToolParser(style), [text])
    assert run(ToolParser(style), list(text)) == whole
    got = told(whole)
    assert [(name, json.loads(arguments), end) for name, arguments, end in got["calls"]] == [
        ("f", {"x": ["]", 1]}, "complete")
    ] * (1 + style.lists)
    assert got["answer"] == "So."
    check_passing(lambda: ToolParser(style), [text[:9], text[9:40], text[40:]], text)


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_what_is_cut_short_before_it_is_known_is_answer(style):
    for end in ("", " ", "["[: style.lists]):
        got = split_calls(style, style.opens[0] + end, [])
        assert (got["calls"], got["answer"]) == ([], style.opens[0] + end)
