"""Calls as a programming language writes them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from splitting import cut, run, told
from written_calls import write

from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.grammars import LiteralStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

STYLES = [style for style in TOOL_STYLES.values() if isinstance(style, LiteralStyle) and not style.name_suffix]
TOOLS = [{"name": "f"}, {"name": "g"}, {"name": "a.b"}]
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.sampled_from("ab\"'\\\n é😀{}[](),:=<"))
VALUES = st.recursive(
    LEAVES | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["x", "y", "long_name"]), VALUES)


def parser(style):
    return ToolParser(style, TOOLS)


@given(st.sampled_from(STYLES), st.lists(ARGUMENTS, min_size=1, max_size=3), st.lists(st.integers(0, 999), max_size=6))
def test_calls_come_back_however_they_are_cut(style, calls, places):
    text = write(style, *(("f", call) for call in calls))
    whole = run(parser(style), ["Let me see.\n", text])
    assert run(parser(style), cut("Let me see.\n" + text, places)) == whole
    got = told(whole)
    assert [(name, json.loads(text), end) for name, text, end in got["calls"]] == [
        ("f", call, "complete") for call in calls
    ]
    assert got["answer"].strip() == "Let me see."
