"""Inkling's messages: thinking, answer and calls, however the text is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, told

from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.detection import Styles, find_splitter, make_splitter
from tokenweir.stream.decode.parsers.inkling import MARKS, Inkling
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

NEXT = "<|end_message|><|message_model|>"
OBJECT = '{"name": "count", "args": {"of": 3}}'
CALL = f"<|content_invoke_tool_json|>{OBJECT}<|end_message|>"
COUNT = ("count", '{"of": 3}', "complete")


WORDS = [*MARKS, "count", " ", "\n", "x y", "<", OBJECT, OBJECT[:20], OBJECT[20:], CALL]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.lists(st.integers(0, 999), max_size=6))
def test_pieces_do_not_depend_on_how_text_is_cut(words, places):
    text = "".join(words)
    assert run(Inkling(), cut(text, places)) == run(Inkling(), [text])


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["\n", "<", "x"]))
def test_what_passes_copies_and_saved_states_change_nothing(words, disturbance):
    check_passing(Inkling, words, disturbance)


def test_a_vocabulary_shows_the_style_and_the_prompt_how_far_it_is(make_tok):
    tok = make_tok(*(AddedToken(token, special=True) for token in MARKS))
    prompt = "<|content_text|>Hi<|end_message|><|message_model|>"
    for options in ({}, {"reasoning": None}, {"reasoning": None, "tool_style": TOOL_STYLES["inkling"]}):
        splitter, styles = find_splitter(tok, tok.encode(prompt), **options)
        assert styles.messages == "inkling"
        assert told(run(splitter, [f"count{CALL}"]))["calls"] == [COUNT]
    splitter, _ = find_splitter(tok, tok.encode(prompt + "<|content_thinking|>Hm"))
    assert told(run(splitter, [", so.<|end_message|>"]))["thinking"] == ", so."
    splitter, _ = find_splitter(tok, tok.encode(prompt + "<|content_text|>So"))
    assert told(run(splitter, [" it is."]))["answer"] == " it is."


def test_thinking_that_stays_in_the_answer_loses_its_markup():
    splitter = make_splitter(Styles(None, TOOL_STYLES["inkling"]))
    assert told(run(splitter, [f"<|content_thinking|>Hm.{NEXT}<|content_text|> So."]))["answer"] == "Hm. So."
    assert make_splitter(Styles(STYLES["inkling"], None)).channel is Channel.ANSWER
