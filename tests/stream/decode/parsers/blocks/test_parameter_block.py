"""Calls whose arguments are tagged one by one, in every style of that grammar."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from splitting import check_passing, cut, run, split_calls, told
from written_calls import write

from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.templates.styles.grammars import ParameterStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

STYLES = [style for style in TOOL_STYLES.values() if isinstance(style, ParameterStyle)]
QWEN = TOOL_STYLES["qwen3-coder"]
TOOLS = CASES["tools"]
VALUES = {
    "text": st.text(st.sampled_from('ab"\\\n é€😀<>/')),
    "count": st.integers(),
    "ratio": st.floats(allow_nan=False, allow_infinity=False),
    "flag": st.booleans(),
    "map": st.dictionaries(st.text("abc", min_size=1), st.integers() | st.text("x<>\n")),
    "list": st.lists(st.none() | st.integers() | st.text("x<")),
    "maybe": st.none() | st.text("nulx", min_size=1).filter(lambda text: text.lower() != "null"),
}


def parser(style):
    return ToolParser(style, TOOLS)


def split(style, text):
    return split_calls(style, text, TOOLS)


def _ends_a_value(style, text):
    return any(end in "\n" + text for end in (style.value_closes, *style.value_stops))


arguments = st.fixed_dictionaries({}, optional=VALUES)


@given(st.sampled_from(STYLES), st.lists(arguments, min_size=1, max_size=3), st.lists(st.integers(0, 999), max_size=6))
def test_calls_come_back_however_they_are_cut(style, calls, places):
    calls = [{k: v for k, v in a.items() if not (isinstance(v, str) and _ends_a_value(style, v))} for a in calls]
    text = "Let me see.\n" + write(style, *(("f", call) for call in calls))
    whole = run(parser(style), [text])
    assert run(parser(style), cut(text, places)) == whole
    got = told(whole)
    assert [(name, json.loads(text), end) for name, text, end in got["calls"]] == [
        ("f", call, "complete") for call in calls
    ]
    assert got["answer"].strip() == "Let me see."


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_may_be_one_object_in_place_of_tags(style):
    written = [
        write(style, ("now", {})).replace(
            style.call_closes or style.closes, text + (style.call_closes or style.closes), 1
        )
        for text in ('\n{"a": ["</x>", 1]}\n', '{"a": 1', '{"a": tru}')
    ]
    for text, call in zip(
        written,
        [('\n{"a": ["</x>", 1]}'.strip(), "complete"), ('{"a": 1', "malformed"), ('{"a": tru}', "malformed")],
        strict=True,
    ):
        whole = run(parser(style), [text])
        assert run(parser(style), list(text)) == whole
        got = told(whole)
        assert [said[1:] for said in got["calls"]] == [call]
        assert got["answer"] == ""
    check_passing(lambda: parser(style), [written[0][:40], written[0][40:]], written[0])


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_string_goes_out_as_it_comes(style):
    text = write(style, ("f", {"text": "abcdef"}))
    splitter, given_ = parser(style), ""
    for char in text[: text.index("abcdef") + 6]:
        given_ += "".join(piece.text for piece in splitter.feed(char))
    assert given_.endswith('"abcdef')


@pytest.mark.parametrize("style", [s for s in STYLES if s.call_opens and not s.entities], ids=lambda style: style.name)
def test_a_call_behind_one_that_is_none_is_found(style):
    opener = style.opens[0] * (style.opens[0] != style.call_opens)
    none = write(style, ("a b", {})).removesuffix(style.closes)
    got = split(style, none + write(style, ("f", {"count": 3})).removeprefix(opener))
    assert got["calls"] == [("f", '{"count": 3}', "complete")]
    assert got["answer"].startswith(none.removesuffix("".join(style.tails)))


def test_a_style_without_its_tags_is_refused():
    with pytest.raises(ValueError, match=r"^tool style 'glm': a tag of names, keys or values is empty$"):
        replace(TOOL_STYLES["glm"], key_opens="")
    with pytest.raises(ValueError, match=r"^tool style 'qwen3-coder': nothing ends a call$"):
        replace(QWEN, closes="", call_closes="")


def test_a_verbatim_value_needs_two_texts():
    with pytest.raises(ValueError, match=r"^tool style 'minicpm5': verbatim \('<',\) is no pair of texts$"):
        replace(TOOL_STYLES["minicpm5"], verbatim=("<",))
