"""Muse's messages: thinking, answer and calls, however the text is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, told

from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.detection import Styles, find_splitter, make_splitter
from tokenweir.stream.decode.parsers.muse import MARKS, Muse
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.reasoning import STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

TOOLS = [{"name": "count", "parameters": {"properties": {"of": {"type": "integer"}, "as": {"type": "string"}}}}]
INVOKE = '<atem:invoke name="count">\n<atem:parameter name="of">3</atem:parameter>\n</atem:invoke>'
CALL = f"<atem:function_calls>\n{INVOKE}\n</atem:function_calls>"
COUNT = ("count", '{"of": 3}', "complete")
NEXT = "<|start|>assistant"


def split(text):
    """Split an answer whole and character by character, which must be the same."""
    whole = run(Muse(TOOLS), [text])
    assert run(Muse(TOOLS), list(text)) == whole
    return told(whole)


@pytest.mark.parametrize(
    ("text", "thinking", "answer", "calls"),
    [
        (" to=user<|message|>It is.<|eot|>", "", "It is.", []),
        (" to=commentary<|message|>I look.<|eom|>", "", "I look.", []),
        ("<|message|>It is.", "", "It is.", []),
        ("to=self<|message|>Hm.", "Hm.", "", []),
        (f" to=self<|message|>Hm.<|eom|>{NEXT} to=user<|message|>So.<|eot|>", "Hm.", "So.", []),
        (f" to=count<|message|>{CALL}", "", "", [COUNT]),
        (f" to=count<|message|>{CALL}<|eom|>{NEXT} to=count<|message|>{CALL}<|eot|>", "", "", [COUNT, COUNT]),
        (f" to=user<|message|>So.<|eom|>\n{NEXT} to=count<|message|>{CALL}", "", "So.", [COUNT]),
        # Tags in a thought or an answer are text.
        (f" to=self<|message|>Say {CALL}?<|eom|>", f"Say {CALL}?", "", []),
        (f" to=user<|message|>Say {CALL}.<|eot|>", "", f"Say {CALL}.", []),
        # What is no call in a message to a tool is answer, its header included.
        (" to=count<|message|>three<|eom|>", "", " to=count<|message|>three", []),
        (" to=count<|message|>\n<|eom|>", "", " to=count<|message|>\n", []),
        (f" to=count<|message|>\n{CALL}\nSo.<|eom|>", "", "\nSo.", [COUNT]),
        (f" to=count<|message|>I call {CALL}<|eom|>", "", " to=count<|message|>I call ", [COUNT]),
        (f" to=count<|message|>{' ' * 2000}{CALL}", "", f" to=count<|message|>{' ' * 2000}", [COUNT]),
    ],
)
def test_messages(text, thinking, answer, calls):
    got = split(text)
    assert (got["thinking"], got["answer"], got["calls"]) == (thinking, answer, calls)


def test_the_end_of_a_message_ends_its_call():
    got = split(f" to=count<|message|>{CALL[:70]}<|eom|>{NEXT} to=user<|message|>So.")
    assert got["calls"] == [("count", "", "open")]
    assert (got["answer"], got["why"]) == ("So.", [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Just an answer.", "'J' is no header of a message"),
        (" to=user or so<|message|>x", "' to=user o' is no header of a message"),
        (" to=us", "the end stands in a header"),
        (" to=us<|eom|>", "<|eom|> stands in a header"),
        (" to=user<|message|>So.<|eom|>More.", "'M' stands outside of a message"),
        (f" to=user<|message|>So.<|eom|>{NEXT} of<|message|>x", "' o'"),
    ],
)
def test_a_header_that_is_none_is_answer_with_the_reason(text, reason):
    pieces = run(Muse(TOOLS), [text])
    assert pieces == run(Muse(TOOLS), list(text))
    given = [piece for piece in pieces if piece.malformed]
    assert given
    assert all(piece.channel is Channel.ANSWER and piece.text == piece.source for piece in given)
    assert reason.strip("'") in given[0].malformed


WORDS = [
    *MARKS,
    " to=self",
    " to=user",
    " to=count",
    "to=",
    "assistant",
    "\n",
    "x",
    CALL,
    CALL[:60],
    *CALL.split(">"),
    "<",
]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.lists(st.integers(0, 999), max_size=6))
def test_pieces_do_not_depend_on_how_text_is_cut(words, places):
    text = "".join(words)
    assert run(Muse(TOOLS), cut(text, places)) == run(Muse(TOOLS), [text])


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["\n", "<", "x"]))
def test_what_passes_copies_and_saved_states_change_nothing(words, disturbance):
    check_passing(lambda: Muse(TOOLS), words, disturbance)


def test_a_vocabulary_shows_the_style_and_the_prompt_how_far_it_is(make_tok):
    tok = make_tok(*(AddedToken(token, special=True) for token in MARKS))
    text = f" to=count<|message|>{CALL}<|eot|>"
    for options in ({}, {"reasoning": None}, {"reasoning": None, "tool_style": TOOL_STYLES["muse"]}):
        prompt = tok.encode("<|start|>user<|message|>Hi<|eot|><|start|>assistant")
        splitter, styles = find_splitter(tok, prompt, tools=TOOLS, **options)
        assert styles.messages == "muse"
        assert told(run(splitter, [text]))["calls"] == [COUNT]
    inside = tok.encode("<|start|>assistant to=self<|message|>Hm")
    splitter, _ = find_splitter(tok, inside, tools=TOOLS)
    assert told(run(splitter, [", so.<|eom|>"]))["thinking"] == ", so."


def test_thinking_that_stays_in_the_answer_loses_its_header():
    splitter = make_splitter(Styles(None, TOOL_STYLES["muse"]), TOOLS)
    text = f" to=self<|message|>Hm.<|eom|>{NEXT} to=user<|message|> So.<|eot|>"
    assert told(run(splitter, [text]))["answer"] == "Hm. So."
    assert make_splitter(Styles(STYLES["muse"], None)).channel is Channel.ANSWER


def test_arguments_are_typed_by_the_schemas():
    call = CALL.replace('"of">3', '"as">3')
    ((name, arguments, _),) = split(f" to=count<|message|>{call}")["calls"]
    assert (name, json.loads(arguments)) == ("count", {"as": "3"})
