from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.errors import TokenIdError
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import Alignment, Finish, ReasoningDelta, TextDelta, ToolCallDelta

WORDS = ["<think>", "</think>", "\n", "Hello", " world", "é", "👩‍👩", "日本", "ox", "boxes", "User", "x", "\xff"]


def feed_all(decoder, ids, logprobs, cuts):
    places = sorted({0, len(ids), *(cut % (len(ids) + 1) for cut in cuts)})
    return [d for a, b in pairwise(places) for d in decoder.feed(ids[a:b], logprobs[a:b])] + decoder.finish()


@given(
    st.data(),
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.lists(st.integers(0, 60), max_size=6),
    st.fixed_dictionaries(
        {},
        optional={
            "stop": st.sampled_from([["oxesU"], ["日"], ["\n\n", "x"]]),
            "reasoning": st.sampled_from(["auto", "strip", None]),
            "max_tokens": st.integers(0, 20),
        },
    ),
)
def test_what_comes_with_an_id_leaves_with_it(think_tok, data, words, cuts, options):
    tok = think_tok
    ids = [i for word in words for i in data.draw(st.sampled_from([tok.encode(word), list(word.encode())]))]
    logprobs = [-float(place) for place in range(len(ids))]
    decoder = ChatDecoder(tok, alignment=True, **options)
    deltas = feed_all(decoder, ids, logprobs, cuts)
    consumed = len(ids) - decoder.ignored
    assert [p for delta in deltas for p in delta.alignment.logprobs] == logprobs[:consumed]
    sent = {TextDelta: "", ReasoningDelta: ""}
    for delta in deltas:
        assert delta.alignment.token_bytes == [tok.token_bytes(token_id) for token_id in delta.token_ids]
        text = sent[TextDelta if isinstance(delta, Finish) else type(delta)]
        assert (delta.alignment.char_start, delta.alignment.byte_start) == (len(text), len(text.encode()))
        if not isinstance(delta, Finish):
            sent[type(delta)] += delta.text
    plain = ChatDecoder(tok, **options)
    assert [d.token_ids for d in deltas] == [d.token_ids for d in feed_all(plain, ids, logprobs, cuts)]


@given(st.data(), st.lists(st.sampled_from(WORDS), max_size=12), st.lists(st.integers(0, 60), max_size=6))
def test_candidates_leave_with_their_id(think_tok, data, words, cuts):
    """Also where a part of the ids comes without candidates, and through a saved state."""
    tok = think_tok
    ids = [token_id for word in words for token_id in tok.encode(word)]
    tops = [[(token_id, -0.5), (place % 7, -2.0)] for place, token_id in enumerate(ids)]
    places = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))})
    decoder, deltas, expected = ChatDecoder(tok, alignment=True), [], []
    for a, b in pairwise(places):
        given_here = data.draw(st.booleans())
        deltas += decoder.feed(ids[a:b], None, tops[a:b] if given_here else None)
        expected += tops[a:b] if given_here else [[]] * (b - a)
        decoder = ChatDecoder.from_state(tok, decoder.state(), alignment=True)
    deltas += decoder.finish()
    found = [top for delta in deltas for top in delta.alignment.top_logprobs or [[] for _ in delta.token_ids]]
    assert [[(each.token_id, each.logprob) for each in top] for top in found] == expected[: len(found)]
    assert all(each.token_bytes == tok.token_bytes(each.token_id) for top in found for each in top)
    assert len(found) == len(ids) - decoder.ignored


def test_candidates_that_cannot_be(tok):
    decoder = ChatDecoder(tok, alignment=True)
    with pytest.raises(ValueError, match="^there are 1 lists of candidates with 2 ids$"):
        decoder.feed([1, 2], None, [[]])
    with pytest.raises(TokenIdError, match=r"^top_logprobs\[1\]: token id 99999999 is outside the vocabulary"):
        decoder.feed([1, 2], None, [[], [(99999999, -1.0)]])


@given(st.data(), st.lists(st.sampled_from(["Hello", " world", "é", "👩‍👩", "日本", "boxes", "\n"]), max_size=12))
def test_joined_token_bytes_are_the_text_as_far_as_it_consists_of_whole_tokens(tok, data, words):
    ids = [i for word in words for i in data.draw(st.sampled_from([tok.encode(word), list(word.encode())]))]
    decoder = ChatDecoder(tok, alignment=True, reasoning=None, stop=["oxesZ", "\n\nZ"])
    text, spelled = b"", b""
    for delta in [d for i in ids for d in decoder.feed([i])] + decoder.finish():
        if isinstance(delta, TextDelta):
            text += delta.text.encode()
        spelled += b"".join(delta.alignment.token_bytes)
        assert text.startswith(spelled)
    assert text == spelled == "".join(words).encode()


def test_a_split_character_joins_from_its_tokens_bytes(tok):
    decoder = ChatDecoder(tok, alignment=True)
    first, second = "é".encode()
    assert decoder.feed([first], [-0.5]) == []
    assert decoder.feed([second], [-1.0]) == [
        TextDelta("é", [first, second], alignment=Alignment([-0.5, -1.0], [b"\xc3", b"\xa9"], 0, 0, [], [True, True]))
    ]
    assert decoder.feed([65])[0].alignment == Alignment([None], [b"A"], 1, 2, [], [True])
    assert decoder.finish()[-1].alignment == Alignment([], [], 2, 3)


@pytest.mark.parametrize("size", [1, 7])
def test_calls_have_offsets_of_their_own(tok, size):
    text = "".join(f'<tool_call>{{"name": "f", "arguments": {{"a": "{a}"}}}}</tool_call>' for a in ("é", "日本"))
    ids = list(text.encode())
    decoder = ChatDecoder(tok, tool_style="hermes", alignment=True)
    deltas = feed_all(decoder, ids, [0.0] * len(ids), range(0, len(ids), size))
    sent = ["", ""]
    for delta in deltas:
        if isinstance(delta, ToolCallDelta):
            of = sent[delta.call]
            assert (delta.alignment.char_start, delta.alignment.byte_start) == (len(of), len(of.encode()))
            sent[delta.call] += delta.arguments
    assert sent == ['{"a": "é"}', '{"a": "日本"}']


def test_there_must_be_as_many_logprobs_as_ids(tok):
    for alignment in (True, False):
        decoder = ChatDecoder(tok, alignment=alignment)
        with pytest.raises(ValueError, match="^there are 1 logprobs with 2 ids$"):
            decoder.feed([65, 66], [-1.0])
        assert decoder.finish()[-1].usage.completion_tokens == 0


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        ("ab", "logprobs must be a sequence of float, not str 'ab'"),
        (5, "logprobs must be a sequence of float, not int 5"),
        ({1: -1.0, 2: -2.0}, "logprobs must be a sequence of float, not dict {1: -1.0, 2: -2.0}"),
        ([-1.0, "x"], "logprobs[1] must be float, not str 'x'"),
        ([[-1.0], [-2.0]], "logprobs[0] must be float, not list [-1.0]"),
    ],
)
def test_what_are_no_logprobs(tok, logprobs, message):
    for alignment in (True, False):
        decoder = ChatDecoder(tok, alignment=alignment)
        with pytest.raises(TypeError, match=f"^{re.escape(message)}$"):
            decoder.feed([65, 66], logprobs)
        assert decoder.finish()[-1].usage.completion_tokens == 0


def test_logprobs_may_be_an_array(tok):
    alignment = ChatDecoder(tok, alignment=True).feed([65, 66], np.array([-1.0, -2.0]))[0].alignment
    assert alignment.logprobs == [-1.0, -2.0]
    assert {type(p) for p in alignment.logprobs} == {float}


def test_after_a_bad_id_logprobs_still_go_with_their_ids(tok):
    decoder = ChatDecoder(tok, alignment=True)
    with pytest.raises(TokenIdError):
        decoder.feed([65, 10**6, 66], [-1.0, -2.0, -3.0])
    [delta] = decoder.feed([67], [-4.0])
    assert (delta.text, delta.alignment.logprobs) == ("AC", [-1.0, -4.0])
