from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import Channel

WORDS = ["<think>", "</think>", "\n", "Hello", "<", "é", "x", "<skip>", "日本", "<eos>"]


@given(
    st.lists(st.sampled_from(WORDS), max_size=14),
    st.lists(st.integers(0, 60), max_size=5),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([{}, {"stop": ["oH"], "stop_scope": "all"}, {"max_tokens": 9}, {"reasoning": "strip"}]),
)
def test_the_budget_is_spent_with_the_same_id_however_ids_are_cut(think_tok, words, cuts, budget, inside, options):
    tok = think_tok
    ids = [i for word in words for i in tok.encode(word)]
    prompt = tok.encode("<skip><think>" if inside else "<skip>")
    spent_at, reports = [], []
    decoder = ChatDecoder(tok, prompt_ids=prompt, thinking_budget=budget, **options)
    for place, token_id in enumerate(ids):
        decoder.feed([token_id])
        if decoder.thinking_spent:
            spent_at.append(place)
    places = sorted({0, len(ids), *(cut % (len(ids) + 1) for cut in cuts)})
    chunked = ChatDecoder(tok, prompt_ids=prompt, thinking_budget=budget, on_thinking_spent=reports.append, **options)
    for a, b in pairwise(places):
        chunked.feed(ids[a:b])
        assert chunked.thinking_spent == bool(spent_at and spent_at[0] < b)
    assert reports == ([0] if spent_at else [])


@pytest.mark.parametrize("inside", [False, True])
def test_the_budget_is_spent_in_the_feed_of_the_last_thinking_id(think_tok, inside):
    opened = think_tok.encode("<think>")
    decoder = ChatDecoder(think_tok, prompt_ids=opened if inside else [], thinking_budget=4)
    if not inside:
        decoder.feed(think_tok.encode("Hi\n"))
        decoder.feed(opened)
    thinking = list(b"abcd") if inside else list(b"abc")
    for token_id in thinking[:-1]:
        decoder.feed([token_id])
        assert not decoder.thinking_spent
    decoder.feed(thinking[-1:])
    assert decoder.thinking_spent
    assert decoder.channel is Channel.REASONING


def test_thinking_that_ends_with_its_budget_is_not_spent(think_tok):
    spent = []
    decoder = ChatDecoder(think_tok, thinking_budget=3, on_thinking_spent=spent.append)
    decoder.feed(think_tok.encode("<think>a</think>"))
    decoder.feed(think_tok.encode("answer of any length"))
    decoder.finish()
    assert not spent
    assert decoder.channel is Channel.ANSWER


@pytest.mark.parametrize("options", [{}, {"max_tokens": 3}, {"stop": ["b"], "stop_scope": "all"}])
def test_an_answer_that_ends_with_its_budget_reports_nothing(think_tok, options):
    spent = []
    decoder = ChatDecoder(think_tok, thinking_budget=3, on_thinking_spent=spent.append, **options)
    deltas = decoder.feed(think_tok.encode("<think>a" + ("b" if options else "<eos>")))
    assert deltas[-1].usage.reasoning_tokens == 3
    assert not spent


def test_it_is_reported_once_and_nothing_is_cut_off(think_tok):
    spent = []
    decoder = ChatDecoder(think_tok, thinking_budget=2, on_thinking_spent=spent.append)
    deltas = decoder.feed(think_tok.encode("<think>abc</think>d\n<think>efg")) + decoder.finish()
    assert spent == [0]
    assert [delta.text for delta in deltas[:-1]] == ["abc", "d\n", "efg"]
    assert deltas[-1].usage.reasoning_tokens == 9


def test_a_copy_reports_for_itself_and_a_reset_anew(think_tok):
    spent = []
    decoder = ChatDecoder(think_tok, thinking_budget=3, on_thinking_spent=spent.append)
    decoder.feed(think_tok.encode("<think>a"))
    branch = decoder.copy()
    decoder.feed([98])
    assert (decoder.thinking_spent, branch.thinking_spent) == (True, False)
    branch.feed([98])
    decoder.reset()
    assert not decoder.thinking_spent
    decoder.feed(think_tok.encode("<think>ab"))
    assert spent == [0] * 3


def test_a_budget_below_one_is_refused(think_tok):
    with pytest.raises(ValueError, match="^thinking_budget=0 is below 1$"):
        ChatDecoder(think_tok, thinking_budget=0)
