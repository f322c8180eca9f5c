"""Calls as a programming language writes them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, split_calls, told

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


def gemma(style, value):
    quote = style.quotes[0]
    match value:
        case str():
            return f"{quote}{value}{quote}"
        case dict():
            return "{" + ",".join(f"{key}:{gemma(style, item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ",".join(gemma(style, item) for item in value) + "]"
    return json.dumps(value)


def write(style, *calls):
    """Calls as a model of the style writes them."""
    if style.escapes:
        texts = [f"{name}({', '.join(f'{k}={v!r}' for k, v in call.items())})" for name, call in calls]
        return f"{style.opens[0]}[{', '.join(texts)}]{style.closes}"
    return "".join(f"{style.opens[0]}call:{name}{gemma(style, call)}{style.closes}" for name, call in calls)


def parser(style):
    return ToolParser(style, TOOLS)


def split(style, text):
    return split_calls(style, text, TOOLS)


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


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("name", ["天気", "été_2", "2fa"])
def test_a_name_has_any_letters(style, name):
    assert split_calls(style, write(style, (name, {})))["calls"] == [(name, "{}", "complete")]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_markup_that_is_mentioned_is_text_and_a_call_after_it_is_one(style):
    mention = f"Say `{style.opens[0]}`. "
    got = split(style, mention + write(style, ("f", {"x": 1})) + "So.")
    assert (got["answer"], got["calls"]) == (mention + "So.", [("f", '{"x": 1}', "complete")])
    assert len(got["why"]) == 1


@given(st.sampled_from(STYLES), st.data(), st.lists(st.integers(0, 999), max_size=6))
def test_any_mixture_of_markup_is_split_the_same_however_it_is_cut(style, data, places):
    marks = [
        *style.marks,
        "f",
        "g(",
        "call:f{",
        "x=",
        "x:",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        "'a",
        '"',
        "\\n",
        "1",
        " ",
    ]
    text = "".join(data.draw(st.lists(st.sampled_from([mark for mark in marks if mark]), max_size=14)))
    whole = run(parser(style), [text])
    assert run(parser(style), cut(text, places)) == whole
    told(whole)


@given(st.sampled_from(STYLES), st.data())
def test_states_are_independent(style, data):
    marks = [*style.marks, "f", "g(", "call:f{", "x=", "x:", "[", "]", "{", "}", ")", ",", "'a'", "\\", "1", " "]
    words = data.draw(st.lists(st.sampled_from([mark for mark in marks if mark]), max_size=14))
    check_passing(lambda: parser(style), words, write(style, ("f", {"x": 1})))


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_cut_short_anywhere_is_never_complete_and_loses_nothing(style):
    text = write(style, ("f", {"x": [1, "two"], "y": None}))
    last = text.rindex(style.brackets[1])
    for end in range(last):
        got = told(run(parser(style), [text[:end]]))
        assert all(state == "open" for _, _, state in got["calls"])
        if not got["calls"]:
            assert got["answer"] == text[:end]
