"""Muse's messages: thinking, answer and calls, however the text is cut."""

from __future__ import annotations

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
    assert run(Muse(tools=TOOLS), cut(text, places)) == run(Muse(tools=TOOLS), [text])


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from(["\n", "<", "x"]))
def test_what_passes_copies_and_saved_states_change_nothing(words, disturbance):
    check_passing(lambda: Muse(tools=TOOLS), words, disturbance)


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
