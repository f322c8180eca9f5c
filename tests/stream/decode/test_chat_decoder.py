from __future__ import annotations

import json
import re

import numpy as np
import pytest
from case_tables import cases
from drawn_answers import SlowPath, run, text_of
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.errors import TokenIdError
from tokenweir.stream.chat.stages import detokenize
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.deltas import (
    Finish,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from tokenweir.stream.events.merge import merge

CASES = cases(__file__)

TEXTS = CASES["texts"]


def consumed(deltas):
    return [token_id for delta in deltas for token_id in delta.token_ids]


@given(st.lists(st.sampled_from(TEXTS + ["ab", "x"])), st.data())
def test_an_id_is_in_the_delta_with_its_last_byte(tok, words, data):
    ids, ends = [], []
    for word in words:
        spelled = data.draw(st.sampled_from([tok.encode(word), list(word.encode())]))
        for token_id in spelled:
            ids.append(token_id)
            ends.append((ends[-1] if ends else 0) + len(tok.token_bytes(token_id)))
    decoder = ChatDecoder(tok, stop=["oxU", "\n\n\n", "👩x"], reasoning=None)
    sent = place = 0
    for delta in [delta for token_id in ids for delta in decoder.feed([token_id])]:
        if isinstance(delta, TextDelta):
            sent += len(delta.text.encode())
            expected = [token_id for token_id, end in zip(ids[place:], ends[place:], strict=True) if end <= sent]
            assert delta.token_ids == expected
            place += len(expected)


def test_text_that_is_skimmed_for_long_still_counts_as_before_a_tag(think_tok):
    for before, inside in (("x" * 5000, False), ("x" * 5000 + "\n", True), (" \n" * 5000, True)):
        decoder = ChatDecoder(think_tok)
        for token_id in think_tok.encode(before):
            decoder.feed([token_id])
        deltas = decoder.feed(think_tok.encode("<think>a"))
        assert isinstance(deltas[-1], ReasoningDelta) is inside


def test_ids_without_text_go_to_the_next_delta_and_the_rest_to_finish(mistral_tok):
    opener, closer, eos, skip = (mistral_tok.token_to_id(t) for t in ("[THINK]", "[/THINK]", "<eos>", "<skip>"))
    decoder = ChatDecoder(mistral_tok)
    deltas = decoder.feed([opener, 104, skip, closer, skip, 0xC3, 0xA9, skip, eos, 65])
    assert deltas == [
        ReasoningDelta("h", [opener, 104]),
        TextDelta("é", [skip, closer, skip, 0xC3, 0xA9]),
        Finish(FinishReason.STOP, None, Usage(0, 9, 4), [skip, eos]),
    ]
    assert decoder.finished
    assert decoder.ignored == 1


@pytest.mark.parametrize("options", [{}, {"min_tokens": 99}, {"stop": ["o "]}])
@pytest.mark.parametrize("before", [b"Hello", b"\n"])
def test_an_id_with_text_and_half_a_character_goes_with_that_character(think_tok, before, options):
    half = next(i for i in range(256, think_tok.vocab_size) if think_tok.token_bytes(i) == b" \xf0\x9f")
    decoder = ChatDecoder(think_tok, **options)
    decoder.feed([*before, 65])
    assert decoder.feed([half]) == [TextDelta(" ", [])]
    assert decoder.feed([0x91, 0xA9]) == [TextDelta("👩", [half, 0x91, 0xA9])]


def test_an_id_that_a_stop_cuts_goes_to_finish(tok):
    boxes = tok.token_to_id("boxes")
    assert ChatDecoder(tok, stop=["ox"]).feed([boxes]) == [
        TextDelta("b", []),
        Finish(FinishReason.STOP, "ox", Usage(0, 1, 0), [boxes]),
    ]
    assert ChatDecoder(tok, stop=["ox"], include_stop=True).feed([boxes])[0] == TextDelta("box", [])


def test_after_the_end_feed_gives_nothing_and_counts(tok):
    decoder = ChatDecoder(tok, max_tokens=2)
    assert decoder.feed([65, 66, 67])[-1].reason is FinishReason.LENGTH
    assert decoder.feed([68, 69]) == []
    assert decoder.finish() == []
    assert decoder.ignored == 3


def test_max_tokens_zero_ends_before_the_first_id(tok):
    decoder = ChatDecoder(tok, max_tokens=0)
    assert decoder.feed([65]) == [Finish(FinishReason.LENGTH, None, Usage(), [])]
    assert decoder.ignored == 1


@pytest.mark.parametrize(("min_tokens", "answer"), [(2, "a"), (3, "ab"), (4, "ab"), (5, "abc")])
def test_min_tokens_is_exact_for_end_tokens(tok, min_tokens, answer):
    eos = tok.token_to_id("<eos>")
    for options in ({}, {"ignore_eos": True, "stop_token_ids": [eos]}):
        decoder = ChatDecoder(tok, min_tokens=min_tokens, **options)
        assert text_of(run(decoder, [[97, eos, 98, eos, 99]])) == answer


def test_min_tokens_counts_where_the_match_completes_and_not_where_it_is_released(think_tok):
    # The second id completes the stop "<", which the parser holds back until the third: it completed too early.
    decoder = ChatDecoder(think_tok, stop=["<"], min_tokens=3, max_tokens=9)
    assert text_of(run(decoder, [[10], [60], [97], [98]])) == "\n<ab"
    decoder = ChatDecoder(think_tok, stop=["<"], min_tokens=2)
    assert text_of(run(decoder, [[10], [60], [97], [98]])) == "\n"


def test_stop_token_ids_hold_under_ignore_eos_and_name_themselves(tok):
    eos = tok.token_to_id("<eos>")
    finish = ChatDecoder(tok, ignore_eos=True, stop_token_ids=[66]).feed([65, eos, 66])[-1]
    assert (finish.reason, finish.stop_reason, finish.token_ids) == (FinishReason.STOP, 66, [eos, 66])
    assert ChatDecoder(tok, stop_token_ids=[66], include_stop=True).feed([65, 66])[0] == TextDelta("AB", [65, 66])


def test_given_eos_ids_replace_the_tokenizers(tok):
    eos = tok.token_to_id("<eos>")
    decoder = ChatDecoder(tok, eos_ids=[66])
    assert [type(delta) for delta in decoder.feed([65, eos, 66])] == [TextDelta, Finish]
    assert decoder.finished


def test_an_end_token_that_is_ordinary_text_adds_none(tok):
    assert text_of(ChatDecoder(tok, eos_ids=[66]).feed([65, 66])) == "A"


def test_reasoning_off_leaves_tags_in_the_answer(think_tok):
    for off in (None, "off"):
        assert text_of(run(ChatDecoder(think_tok, reasoning=off), [think_tok.encode("<think>a")])) == "<think>a"


def test_a_style_known_from_elsewhere_replaces_detection(tok):
    deltas = run(ChatDecoder(tok, reasoning="cohere"), [tok.encode("<|START_THINKING|>a<|END_THINKING|>b")])
    assert (text_of(deltas, ReasoningDelta), text_of(deltas)) == ("a", "b")


def test_the_prompt_opens_the_thinking_and_completes_a_character(think_tok):
    prompt = [*think_tok.encode("hi<skip><think>"), *"👩".encode()[:2]]
    deltas = run(
        ChatDecoder(think_tok, prompt_ids=np.array(prompt)), [list("👩".encode()[2:]), think_tok.encode("a</think>b")]
    )
    assert (text_of(deltas, ReasoningDelta), text_of(deltas)) == ("👩a", "b")
    assert deltas[-1].usage.prompt_tokens == len(prompt)


@pytest.mark.parametrize("reason", ["cancelled", FinishReason.ERROR, "length"])
def test_finish_gives_the_reason(tok, reason):
    assert ChatDecoder(tok).finish(reason)[-1].reason is FinishReason(reason)


def test_a_bad_id_loses_nothing_that_came_before(tok):
    for bad in (-1, tok.vocab_size, 2**40):
        decoder = ChatDecoder(tok, stop=["zz"])
        with pytest.raises((TokenIdError, TypeError)):
            decoder.feed([65, 10, 122, bad, 66])
        assert run(decoder, [[67]]) == [
            TextDelta("A\nzC", [65, 10, 122, 67]),
            Finish(FinishReason.STOP, None, Usage(0, 4, 0), []),
        ]


def test_index_is_that_of_every_delta(think_tok):
    deltas = run(ChatDecoder(think_tok, index=3), [think_tok.encode("<think>a</think>b")])
    assert {delta.index for delta in deltas} == {3}


def test_feed_takes_arrays_tuples_and_single_ids(tok):
    decoder = ChatDecoder(tok)
    assert text_of([*decoder.feed(np.array([65, 66])), *decoder.feed((67,)), *decoder.feed(68)]) == "ABCD"
    with pytest.raises(TypeError, match="^ids must be a token id or a sequence of ids, not str 'A'$"):
        decoder.feed("A")


@pytest.mark.parametrize("bad", [1.5, "a", None, [66]])
def test_what_is_no_id_in_a_list_is_named_and_harms_nothing(tok, bad):
    decoder = ChatDecoder(tok)
    with pytest.raises(TypeError, match=re.escape(f"a sequence of ids, not list [65, {bad!r}]")):
        decoder.feed([65, bad])
    assert text_of(decoder.feed([66])) == "AB"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"tool_style": "xml"},
            ValueError,
            "unknown tool style 'xml'; known are harmony, ",
        ),
        ({"stop": [""]}, ValueError, "stop string 0 of 1 is empty"),
        ({"stop": [1]}, TypeError, "stop string 0 is int 1, not a str"),
        ({"stop": 5}, TypeError, "stop is int 5, not a list of strings"),
        ({"tools": 5}, TypeError, "tools must be a list, not int"),
        ({"stop_scope": "both"}, ValueError, "stop_scope must be one of answer, reasoning, all, not 'both'"),
        ({"stop_scope": ["all"]}, ValueError, "stop_scope must be one of answer, reasoning, all, not ['all']"),
        ({"min_tokens": -1}, ValueError, "min_tokens=-1 is below 0"),
        ({"min_tokens": None}, TypeError, "min_tokens must be int, not None"),
        ({"max_tokens": 2.5}, TypeError, "max_tokens must be int, not 2.5"),
        ({"max_tokens": True}, TypeError, "max_tokens must be int, not True"),
        ({"index": "a"}, TypeError, "index must be int, not 'a'"),
        ({"index": -1}, ValueError, "index=-1 is below 0"),
        ({"include_stop": "no"}, TypeError, "include_stop='no' is neither True nor False"),
        ({"skip_special_tokens": 0}, TypeError, "skip_special_tokens=0 is neither True nor False"),
        ({"parallel_tool_calls": None}, TypeError, "parallel_tool_calls=None is neither True nor False"),
        ({"on_thinking_spent": "no"}, TypeError, "on_thinking_spent is a str, not a function"),
        (
            {"reasoning": True},
            TypeError,
            "a reasoning style is given by its name or as an object of its own, not as bool True",
        ),
        (
            {"tool_style": [{}]},
            TypeError,
            "a tool style is given by its name or as an object of its own, not as list [{}]",
        ),
        ({"max_tokens": -2}, ValueError, "max_tokens=-2 is below 0"),
        ({"max_tokens": 1 << 64}, ValueError, "max_tokens=18446744073709551616 is above 9223372036854775807; leave it"),
        ({"min_tokens": 1 << 64}, ValueError, "min_tokens=18446744073709551616 is above 9223372036854775807"),
        ({"min_tokens": 3, "max_tokens": 2}, ValueError, "min_tokens=3 is above max_tokens=2"),
        ({"reasoning": "deep"}, ValueError, "unknown reasoning style 'deep'"),
        ({"byte_fallback": "late"}, ValueError, "byte_fallback must be one of"),
        ({"stop_token_ids": [-1]}, TokenIdError, "stop_token_ids: token id -1 is outside the vocabulary (0 to 303)"),
        ({"eos_ids": [304]}, TokenIdError, "eos_ids: token id 304 is outside the vocabulary (0 to 303)"),
        ({"prompt_ids": [304]}, TokenIdError, "token id 304 is outside the vocabulary (0 to 303)"),
        ({"eos_ids": 5}, TypeError, "eos_ids must be a sequence of int, not one int: write [5]"),
        ({"stop_token_ids": "a"}, TypeError, "stop_token_ids must be a sequence of int, not str"),
        ({"stop_token_ids": ["a"]}, TypeError, "stop_token_ids[0] must be int, not str"),
        ({"prompt_ids": "text"}, TypeError, "prompt_ids must be a sequence of int, not str"),
        ({"tool": []}, TypeError, "unexpected keyword argument 'tool': the options of a decoder are alignment, "),
    ],
)
def test_options_that_cannot_be_are_refused_at_once(tok, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ChatDecoder(tok, **options)


def test_what_is_no_tokenizer_is_refused():
    for make in (ChatDecoder, lambda tokenizer: detokenize([], tokenizer)):
        with pytest.raises(TypeError, match="^tokenizer is a str, not a Tokenizer such as Tokenizer.from_file"):
            make("path")


def test_an_unknown_finish_reason_is_refused(tok):
    with pytest.raises(
        ValueError, match="^unknown finish reason 'abort'; known are stop, length, tool_calls, cancelled"
    ):
        ChatDecoder(tok).finish("abort")


def test_usage_under_cancellation_counts_what_was_consumed_and_held(think_tok):
    decoder = ChatDecoder(think_tok, prompt_ids=[65], stop=["xy"])
    ids = think_tok.encode("<think>ab</think>cx")
    deltas = decoder.feed(ids) + decoder.finish("cancelled")
    usage = deltas[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens) == (1, len(ids), 4)
    assert (text_of(deltas), consumed(deltas), decoder.feed([65]), decoder.ignored) == ("cx", ids, [], 1)


# -- tool calls --------------------------------------------------------------------------------------------------------

CALL = '<tool_call>{"name": "f", "arguments": {"code": "%s", "n": [1, 2.5e3, true]}}</tool_call>So'


@pytest.mark.parametrize("reasoning", [None, "think"])
def test_arguments_are_skimmed_and_give_what_they_give_the_long_way(think_tok, reasoning):
    ids = list((CALL % 'if a < b:\\n\\t<think> \\"日本\\"').encode())
    decoder, long_way = (kind(think_tok, reasoning=reasoning, tool_style="hermes") for kind in (ChatDecoder, SlowPath))
    given = [decoder.feed([token_id]) for token_id in ids]
    assert given == [long_way.feed([token_id]) for token_id in ids]
    assert decoder.finish() == long_way.finish()
    calls = [delta for deltas in given for delta in deltas if isinstance(delta, ToolCallDelta)]
    assert [delta.name for delta in calls if delta.name] == ["f"]
    assert json.loads("".join(delta.arguments for delta in calls))["n"] == [1, 2500.0, True]
    assert [delta.complete for delta in calls] == [False] * (len(calls) - 1) + [True]


def test_text_behind_a_broken_block_of_calls_is_an_answer_again(tok):
    block = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>`{<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    decoder = ChatDecoder(tok, tool_style="deepseek", stop=["end｜>\n"])
    *_, answer, _ = merge([*decoder.feed(list(f"{block}\nSo.".encode())), *decoder.finish()])
    assert (answer.text, answer.malformed) == ("\nSo.", None)
    assert len(answer.token_ids) == len("\nSo.")
