"""Inkling's messages: thinking, answer and calls, however the text is cut."""

from __future__ import annotations

import pytest
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


def split(text):
    """Split an answer whole and character by character, which must be the same."""
    whole = run(Inkling(), [text])
    assert run(Inkling(), list(text)) == whole
    return told(whole)


@pytest.mark.parametrize(
    ("text", "thinking", "answer", "calls"),
    [
        ("<|content_text|>It is.<|end_message|>", "", "It is.", []),
        ("<|content_text|>It is.<|content_model_end_sampling|>", "", "It is.", []),
        ("<|content_thinking|>Hm.", "Hm.", "", []),
        (f"<|content_thinking|>Hm.{NEXT}<|content_text|>So.<|end_message|>", "Hm.", "So.", []),
        (f"<|content_thinking|>Hm.{NEXT}<|content_thinking|>Oh.{NEXT}<|content_text|>So.", "Hm.Oh.", "So.", []),
        (CALL, "", "", [COUNT]),
        (f"count{CALL}", "", "", [COUNT]),
        (f"<|content_thinking|>Hm.{CALL}", "Hm.", "", [COUNT]),
        (f"<|content_text|>So.{NEXT}count{CALL}<|message_model|>{CALL}", "", "So.", [COUNT, COUNT]),
        (f"{CALL}<|message_model|><|content_text|>So.<|end_message|>", "", "So.", [COUNT]),
        (CALL.replace(OBJECT, '{"name": "now"}'), "", "", [("now", "{}", "complete")]),
        # Other kinds, and text without one, are answer.
        ("<|content_invoke_tool_text|>ls -l<|end_message|>", "", "ls -l", []),
        ("It is <b>so</b>.", "", "It is <b>so</b>.", []),
        ("so<|end_message|>", "", "so", []),
        ("so<|content_text|>It is.", "", "soIt is.", []),
        ("\n<|content_text|>It is.", "", "It is.", []),
        ("count<|content_invoke_tool_json|>three<|end_message|>", "", "count<|content_invoke_tool_json|>three", []),
        (f"<|content_text|>So.{NEXT}", "", "So.", []),
        (f"<|content_text|>{OBJECT}", "", OBJECT, []),
    ],
)
def test_messages(text, thinking, answer, calls):
    got = split(text)
    assert (got["thinking"], got["answer"], got["calls"]) == (thinking, answer, calls)


def test_the_end_of_a_message_ends_its_call():
    got = split(f"<|content_invoke_tool_json|>{OBJECT[:-4]}{NEXT}<|content_text|>So.")
    assert [name for name, _, state in got["calls"] if state == "open"] == ["count"]
    assert got["answer"].endswith("So.")


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
