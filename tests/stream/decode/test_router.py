"""Blocks of text between markup: white space alone is no block, and no text is lost."""

from __future__ import annotations

import pytest
from case_tables import cases
from drawn_answers import text_of

from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.merge import merge

CASES = cases(__file__)

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": " \\n "}}\n</tool_call>'


def run(tok, text, size, prompt=b"", **options):
    """Decode a text; return its deltas merged, as texts and the letter of each kind, and the ids of all."""
    decoder = ChatDecoder(tok, **{"reasoning": "think", "tool_style": "hermes", "prompt_ids": list(prompt)} | options)
    ids = list(text.encode())
    deltas = merge([d for at in range(0, len(ids), size) for d in decoder.feed(ids[at : at + size])] + decoder.finish())
    assert [token_id for delta in deltas for token_id in delta.token_ids] == ids
    return deltas


def told(deltas):
    letters = {TextDelta: "A", ReasoningDelta: "T", ToolCallDelta: "C"}
    texts = [
        (letters[type(delta)], delta.arguments if isinstance(delta, ToolCallDelta) else delta.text)
        for delta in deltas[:-1]
    ]
    return [f"{letter}:{text}" for letter, text in texts]


@pytest.mark.parametrize("size", [1, 3, 999])
@pytest.mark.parametrize(("text", "expected"), CASES["white_space_alone_between_markup_is_no_text"])
def test_white_space_alone_between_markup_is_no_text(tok, text, expected, size):
    assert told(run(tok, text, size)) == expected


@pytest.mark.parametrize("size", [1, 99])
def test_white_space_next_to_malformed_markup_is_text(tok, size):
    text = "\n<tool_call>\nno call</tool_call>\n"
    assert text_of(run(tok, text, size)) == text


@pytest.mark.parametrize("size", [1, 99])
def test_a_prompt_that_opens_the_thinking_is_markup_too(tok, size):
    assert told(run(tok, "\n</think>\n\n", size, b"<think>\n")) == []
    assert told(run(tok, "\n", size, b"<think>\n")) == []
    assert told(run(tok, "\n", size, b"<think></think>")) == ["A:\n"]


@pytest.mark.parametrize("size", [1, 99])
@pytest.mark.parametrize(("text", "reason"), CASES["one_complete_call_is_the_finish_reason"])
def test_one_complete_call_is_the_finish_reason(tok, text, reason, size):
    assert run(tok, text, size)[-1].reason == reason


def test_held_white_space_goes_out_with_the_first_character(think_tok):
    decoder = ChatDecoder(think_tok, reasoning="think")
    assert decoder.feed(think_tok.encode("<think>a</think>\n\n"))[0].text == "a"
    assert [delta.text for delta in decoder.feed(list(b" H"))] == ["\n\n H"]
    assert [delta.text for delta in decoder.feed(list(b" "))] == [" "]


def test_nothing_is_held_where_no_markup_can_be(tok):
    decoder = ChatDecoder(tok, reasoning=None)
    assert [delta.text for delta in decoder.feed(list(b"\n"))] == ["\n"]


def test_stops_count_in_white_space_that_is_text(tok):
    for text, expected in (("</think>\n\nA", ("", "\n\n")), ("</think>\n\n<think>b</think>c", ("c", None))):
        for size in (1, 99):
            decoder = ChatDecoder(tok, reasoning="think", stop=["\n\n"], prompt_ids=list(b"<think>"))
            ids = list(text.encode())
            deltas = [
                d for at in range(0, len(ids), size) for d in decoder.feed(ids[at : at + size])
            ] + decoder.finish()
            assert (text_of(deltas), deltas[-1].stop_reason) == expected


def test_white_space_that_ends_an_answer_may_complete_a_stop(tok):
    decoder = ChatDecoder(tok, reasoning="think", stop=["\n\n"])
    assert decoder.feed(list(b"\n\n")) == []
    (finish,) = decoder.finish()
    assert (finish.stop_reason, finish.token_ids) == ("\n\n", [10, 10])


def test_tokens_of_the_text_are_told_from_those_of_markup(think_tok):
    ids = think_tok.encode("<think>a</think>\n\nHi <skip>there")
    decoder = ChatDecoder(think_tok, reasoning="think", alignment=True)
    deltas = [delta for token_id in ids for delta in decoder.feed([token_id], [-1.0])] + decoder.finish()
    for kind, text in ((TextDelta, "\n\nHi there"), (ReasoningDelta, "a")):
        tokens = [delta.alignment.text_tokens() for delta in deltas if isinstance(delta, kind)]
        assert b"".join(token for each in tokens for token in each.token_bytes).decode() == text
        assert all(len(each.logprobs) == len(each.token_bytes) == len(each.in_text) for each in tokens)
    assert sum(len(delta.alignment.in_text) for delta in deltas) == len(ids)
