from __future__ import annotations

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from splitting import check_passing, cut, run, told

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.parsers.combined import ThinkingAndTools
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel, ReasoningDelta, TextDelta
from tokenweir.templates.styles.reasoning import STYLES

CASES = cases(__file__)

CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
ANYWHERE = replace(STYLES["think"], opens_at="anywhere", unmatched_closer="drop")


def both(reasoning="think", tools="hermes", *, inside=False):
    return ThinkingAndTools(ReasoningParser(reasoning, inside=inside), ToolParser(tools))


def split(text, *styles, inside=False):
    whole = run(both(*styles, inside=inside), [text])
    assert run(both(*styles, inside=inside), list(text)) == whole
    return told(whole)


MENTIONS = CASES["mentions"]


@given(
    st.lists(
        st.sampled_from([*MENTIONS, CALL, CALL[:-20], "<tool_call>", "\n", "{", '"a', "<", "</think>", "<think>", "x"]),
        max_size=7,
    ),
    st.lists(st.integers(0, 500), max_size=5),
)
def test_mentions_are_split_the_same_however_they_are_cut(parts, places):
    text = "".join(parts)
    whole = run(both(inside=True), [text])
    assert run(both(inside=True), cut(text, places)) == whole
    check_passing(lambda: both(inside=True), cut(text, places), "</think>")


def test_tags_in_arguments_stay():
    text = '<tool_call>{"name": "f", "arguments": {"a": "<think>x</think>"}}</tool_call><think>b</think>c'
    got = split(text, ANYWHERE, "hermes")
    assert got["calls"] == [("f", '{"a": "<think>x</think>"}', "complete")]
    assert (got["thinking"], got["answer"]) == ("b", "c")


def test_markup_does_not_reach_over_markup():
    got = split("a <tool_<think>b</think>call>{}", ANYWHERE, "hermes")
    assert (got["answer"], got["thinking"], got["calls"]) == ("a <tool_call>{}", "b", [])


def test_what_may_pass_changes_with_the_channel():
    splitter = both(inside=True)
    assert splitter.channel is Channel.REASONING
    assert splitter.skippable.until == "<"
    splitter.feed("hm</think>So")
    assert (splitter.channel, splitter.skippable.until) == (Channel.ANSWER, "<")
    splitter.feed("<tool_call>")
    assert (splitter.channel, splitter.skippable) == (Channel.TOOL_CALL, None)


WORDS = CASES["words"]


@given(
    st.lists(st.sampled_from(WORDS), max_size=10),
    st.lists(st.integers(0, 200), max_size=4),
    st.sampled_from(["think", ANYWHERE]),
    st.sampled_from(["hermes", "llama3", "tool-calls"]),
    st.booleans(),
)
def test_every_cutting_gives_the_same_pieces(words, places, reasoning, tools, inside):
    text = "".join(words)
    whole = run(both(reasoning, tools, inside=inside), [text])
    assert run(both(reasoning, tools, inside=inside), list(text)) == whole
    assert run(both(reasoning, tools, inside=inside), cut(text, places)) == whole


@given(st.lists(st.sampled_from([*WORDS, "it is"]), max_size=10))
def test_what_may_pass_comes_as_it_is_and_copies_and_states_are_independent(words):
    check_passing(both, words, "\n<think>{")


def test_an_opening_text_is_named_unless_a_tag_begins_with_it():
    after = both()
    after.feed("some text")
    assert after.skippable.openers == ["<tool_call>"]
    like = both(replace(ANYWHERE, openers=("<tool_call>think",), enders=(), token_enders=()))
    like.feed("some text")
    assert like.skippable.openers == []


@pytest.mark.parametrize(
    ("style", "opener", "calls"),
    [
        ("xlam", "```json\n", '[{"name": "f", "arguments": {}}]\n'),
        ("command-r-plus", "Action:\n```json\n", '[{"tool_name": "f", "parameters": {}}]\n'),
    ],
)
def test_a_fence_that_opens_a_block_is_a_code_block_only_without_a_call(style, opener, calls):
    """Tags in code are text; behind a call they count again. However the text comes, and on the decoder's fast path."""
    code = f"{opener}<|channel>x<channel|>\n```\n<|channel>hm<channel|>ok"
    got = split(code, "gemma4", style)
    assert (got["thinking"], got["answer"]) == ("hm", f"{opener}<|channel>x<channel|>\n```\nok")
    call = f"{opener}{calls}```\n<|channel>hm<channel|>ok"
    called = {"thinking": "hm", "answer": "\nok", "calls": [("f", "{}", "complete")], "why": []}
    assert split(call, "gemma4", style) == called
    tok = Tokenizer.default()
    for text, answer in ((code, got["answer"]), (call, "ok")):
        for ids in (tok.encode(text), [token_id for char in text for token_id in tok.encode(char)]):
            decoder = ChatDecoder(tok, reasoning="gemma4", tool_style=style)
            deltas = [delta for token_id in ids for delta in decoder.feed([token_id])] + decoder.finish()
            assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == "hm"
            assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == answer
