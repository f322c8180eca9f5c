"""Calls that models write wrongly, or that are cut short: nothing of their markup reaches the answer."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from splitting import cut, run, told, without_blank_blocks

from tokenweir import ChatDecoder, ParameterStyle, ReasoningDelta, TextDelta, Tokenizer, ToolCallDelta
from tokenweir.stream.decode.parsers.detection import Styles, make_splitter
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of

CASES = cases(__file__)

TOK = Tokenizer.default()
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "tags": {"type": "array"}, "d": {"type": "object"}},
}
DAYS = CASES["days"]
TOOLS = [{"name": "get_weather", "parameters": PARAMETERS}, {"name": "now", "parameters": {"type": "object"}}]


def splitter(calls, thinking=None, tools=TOOLS, inside=False):
    styles = Styles(style_of(thinking) if thinking else None, tool_style_of(calls))
    return make_splitter(styles, tools, inside=inside)


def split(style, text, **options):
    """Split an answer whole, character by character and in pairs, which must be the same."""
    whole = run(splitter(style, **options), [text])
    assert run(splitter(style, **options), list(text)) == whole
    assert run(splitter(style, **options), cut(text, range(0, len(text), 2))) == whole
    return told(whole)


def calls_of(got):
    return [(name, json.loads(arguments)) for name, arguments, end in got["calls"] if end == "complete"]


def test_the_recorded_cases(data):
    for case in json.loads(data("parser-cases/malformed.json").read_text()):
        tools = [] if case["id"] == "pythonic-code-without-schemas" else case["tools"]
        options = {"thinking": case["thinking"], "tools": tools, "inside": case["inside"]}
        got, expected = split(case["calls_style"], case["text"], **options), case["expected"]
        assert got["answer"].strip() == expected["content"].strip(), case["id"]
        assert got["thinking"].strip() == expected["reasoning"].strip(), case["id"]
        if expected["calls"] == [["get_weather", None]]:  # cut short
            assert [(name, end) for name, _, end in got["calls"]] == [("get_weather", "open")], case["id"]
        else:
            assert [list(call) for call in calls_of(got)] == expected["calls"], case["id"]


# -- every style -------------------------------------------------------------------------------------------------------

SAMPLES = CASES["samples"]
PARTS = ["{", "}", "[", "]", "(", ")", '"', "'", ",", ":", "\\", "<", "x", " ", "\n", "null", "</", "`"]


def value_of(text):
    """Return the place of the first value."""
    return text.rindex("A", 0, text.index("tags"))


@given(st.sampled_from(list(SAMPLES)), st.data())
def test_a_call_that_has_begun_shows_no_markup_however_it_goes_on(style, data):
    text = SAMPLES[style]
    place = data.draw(st.integers(value_of(text), len(text)))
    removed = data.draw(st.integers(0, 3))
    added = "".join(data.draw(st.lists(st.sampled_from(PARTS), max_size=3)))
    broken = text[:place] + added + text[place + removed :]
    whole = run(splitter(style), [broken])
    assert run(splitter(style), cut(broken, data.draw(st.lists(st.integers(0, 300), max_size=6)))) == whole
    got = told(whole)
    assert got["calls"][0][0] == "get_weather"
    calls = tool_style_of(style)
    for mark in (*calls.opens, calls.closes, calls.call_opens, calls.call_closes, "<|call|>", "<|message|>"):
        # Without its slash, a closing tag may be another opening one.
        assert not mark or mark not in got["answer"] or broken.count(mark) > text.count(mark)


@given(st.sampled_from(list(SAMPLES)), st.data())
def test_a_call_cut_short_adds_nothing_to_the_answer(style, data):
    text = SAMPLES[style]
    end = data.draw(st.integers(value_of(text), len(text)))
    got = told(run(splitter(style), [text[:end]]))
    assert got["answer"] == ""
    assert [name for name, *_ in got["calls"]] == ["get_weather"]
    assert got["why"] == []


def test_tags_of_several_first_characters_are_the_same_on_the_fast_path():
    style = ParameterStyle(
        name="own",
        opens=("{call}",),
        closes="{/call}",
        name_stops=("[",),
        key_opens="[key]",
        key_closes=(("[/key]", "schema"),),
        value_opens="<value>",
        value_closes="</value>",
    )
    for end in CASES["tags_of_several_first_characters_are_the_same_on_the_fast_path"]:
        text = f"{{call}}get_weather[key]days[/key]<value>{end}So."
        expected = told(run(make_splitter(Styles(None, style), [DAYS]), [text]))
        decoder = ChatDecoder(TOK, tool_style=style, tools=[DAYS])
        deltas = [delta for token_id in TOK.encode(text) for delta in decoder.feed([token_id])] + decoder.finish()
        assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == expected["answer"]
        arguments = "".join(delta.arguments for delta in deltas if isinstance(delta, ToolCallDelta))
        assert arguments == expected["calls"][0][1]


@given(
    st.lists(
        st.sampled_from(["`", "``", "```", "````", "\n", " ", "\u3000", "a", "<think>", "</think>", "<tool_call>"])
    )
)
def test_blocks_of_code_do_not_depend_on_the_cutting(parts):
    text = "".join(parts)
    assert run(splitter("hermes", "think"), list(text)) == run(splitter("hermes", "think"), [text])


FENCED = CASES["fenced"]


@given(st.lists(st.sampled_from(FENCED), max_size=14), st.sampled_from([None, "hermes"]))
def test_blocks_of_code_are_the_same_on_the_fast_path(parts, calls):
    """The core passes text without markup by itself, and must stop where a code block may begin or end."""
    text = "".join(parts)
    decoder = ChatDecoder(TOK, reasoning="think", tool_style=calls, tools=TOOLS)
    deltas = [delta for token_id in TOK.encode(text) for delta in decoder.feed([token_id])] + decoder.finish()
    styles = Styles(style_of("think"), tool_style_of(calls) if calls else None)
    expected = told(without_blank_blocks(run(make_splitter(styles, TOOLS), [text])))
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == expected["answer"]
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == expected["thinking"]


# -- how much is held back ---------------------------------------------------------------------------------------------


def most_held(style, text, **options):
    parser, most = splitter(style, **options), 0
    for char in text:
        parser.feed(char)
        most = max(most, len(parser.held))
    return most


@pytest.mark.parametrize(("style", "opener"), CASES["a_mention_of_markup_is_held_for_a_few_words"])
def test_a_mention_of_markup_is_held_for_a_few_words(style, opener):
    text = f"<|message|>The text {opener} is what begins a call, and more words follow it. " + "words " * 300
    assert most_held(style, text) <= len(opener) + 12
    assert split(style, text)["calls"] == []


def test_a_long_array_goes_out_as_it_comes():
    value = json.dumps([{"text": "</x> é", "n": n} for n in range(200)])
    text = f"<tool_call>\n<function=get_weather>\n<parameter=tags>\n{value}\n</parameter>\n</function>\n</tool_call>"
    assert most_held("qwen3-coder", text) <= 1100
    assert calls_of(split("qwen3-coder", text)) == [("get_weather", {"tags": json.loads(value)})]
    python = str(json.loads(value))
    assert calls_of(split("qwen3-coder", text.replace(value, python))) == [("get_weather", {"tags": json.loads(value)})]


def test_a_long_array_that_breaks_is_malformed():
    value = json.dumps(list(range(500)))[:-1] + ", }"
    text = f"<tool_call>\n<function=get_weather>\n<parameter=tags>\n{value}\n</parameter>\n</function>\n</tool_call>"
    got = split("qwen3-coder", text + "So.")
    assert [end for *_, end in got["calls"]] == ["malformed"]
    assert got["answer"] == "So."
