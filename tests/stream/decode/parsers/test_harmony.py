"""Harmony, as gpt-oss writes it; what SGLang's and vLLM's tests of it say is restated, and where it is decided otherwise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, told

from tokenweir.stream.decode.parsers.base import MAX_HEADER
from tokenweir.stream.decode.parsers.harmony import MARKS, Harmony
from tokenweir.stream.events.deltas import Channel

THINK = "<|channel|>analysis<|message|>Is 1 < 2?<|end|><|start|>assistant"


def split(text, before="assistant"):
    whole = run(Harmony(before), [text])
    assert run(Harmony(before), list(text)) == whole
    return told(whole)


def test_thinking_and_answer():
    got = split(THINK + "<|channel|>final<|message|>It is.<|return|>")
    assert (got["thinking"], got["answer"], got["why"]) == ("Is 1 < 2?", "It is.", [])


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.get_weather<|message|>",
        " to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>",
        " to=functions.get_weather<|channel|>commentary json<|message|>",
        "<|channel|>analysis to=get_weather code<|message|>",
    ],
)
def test_a_recipient_makes_a_tool_call_wherever_it_stands(header):
    got = split(THINK + header + '{"city": "Rome"}<|call|>')
    assert got["calls"] == [("get_weather", '{"city": "Rome"}', "complete")]
    assert (got["thinking"], got["answer"], got["why"]) == ("Is 1 < 2?", "", [])


def test_commentary_without_a_recipient_is_answer():
    got = split(
        "<|channel|>commentary<|message|>I will look.<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.f<|message|> {"a": 1} <|call|>'
        "<|start|>assistant<|channel|>commentary to=functions.g<|message|>{}"
    )
    assert got["answer"] == "I will look."
    assert got["calls"] == [("f", '{"a": 1}', "complete"), ("g", "{}", "complete")]


def test_a_message_without_a_channel_is_answer():
    assert split("<|message|>Hi")["answer"] == "Hi"


def test_spaces_behind_marks_are_markup_where_a_model_writes_them():
    """LLM-jp 4.1 does, as llama.cpp's tests show it; one space is, and no other."""
    called = ' to=functions.f<|channel|> commentary <|constrain|>  json<|message|> {"a": 1}<|end|>'
    got = split(
        "<|channel|> analysis<|message|> Is 1 < 2?<|end|><|start|> assistant"
        f"{called}<|start|> assistant{called}<|start|> assistant<|channel|> final<|message|>  It is.<|return|>"
    )
    assert (got["thinking"], got["answer"], got["why"]) == ("Is 1 < 2?", " It is.", [])
    assert got["calls"] == [("f", '{"a": 1}', "complete")] * 2
    assert split("<|channel|>final<|message|> It is.")["answer"] == " It is."
    assert split("It is.", " assistant<|channel|> final<|message|> ")["answer"] == "It is."
    assert split("<|channel|> final<|message|><|end|>", " assistant")["why"] == []


def test_final_has_no_recipient_that_is_a_tool():
    got = split("<|channel|>final to=user <|constrain|>json<|message|>{}")
    assert (got["answer"], got["calls"]) == ("{}", [])


def test_a_channel_may_begin_in_a_message():
    got = split("<|channel|>analysis<|message|>a<|channel|>final<|message|>b")
    assert (got["thinking"], got["answer"], got["why"]) == ("a", "b", [])


def test_the_name_goes_out_with_the_first_character_of_the_arguments():
    splitter = Harmony()
    assert splitter.feed("<|channel|>commentary to=functions.f<|message|>\n") == []
    assert splitter.channel is Channel.TOOL_CALL
    name, arguments = splitter.feed('{"a')
    assert (name.name, name.text, arguments.name, arguments.text) == ("f", "", "", '{"a')
    assert name.source == "<|channel|>commentary to=functions.f<|message|>\n"


@pytest.mark.parametrize(
    ("text", "surfaced", "reason"),
    [
        ("Hello world", "Hello world", "'assistantHello w' is no header of a message"),
        ("<|channel|>comment<|message|>x", None, "'assistant<|channel|>comment' is no header of a message"),
        ("<|channel|>analysis foo bar<|message|>x", None, "'assistant<|channel|>analysis foo b' is no header of a"),
        ("<|channel|>analysis", None, "the answer ends inside a header"),
        ("<|channel|>analysis<|en", None, "'assistant<|channel|>analysis<' is no header of a message"),
        ("<|channel|>commentary is a channel", None, "'assistant<|channel|>commentary is a' is no header of a message"),
        ("<|channel|>final<|end|>", "<|channel|>final", "<|end|> stands in a header"),
        ("<|channel|>a<|channel|>final<|message|>b", "<|channel|>ab", "<|channel|> stands in a header"),
        ("<|start|>user<|message|>Hi", None, "'user' is no header of a message"),
        ("<|message|>a<|end|>\n b<|start|>assistant<|message|>c", "abc", "'b' stands outside of a message"),
        ("<|channel|>" + "x" * MAX_HEADER, None, "'assistant<|channel|>xxx"),
    ],
)
def test_what_is_no_message_comes_out_as_text_with_the_reason(text, surfaced, reason):
    got = split(text)
    assert got["answer"] == (text if surfaced is None else surfaced)
    assert (got["thinking"], got["calls"]) == ("", [])
    assert len(got["why"]) == 1
    assert got["why"][0].startswith(reason)
    live = split(text + "<|end|><|start|>assistant<|channel|>final<|message|>So.")
    assert live["answer"].endswith("So.")
    assert live["answer"].count("<|") <= got["answer"].count("<|") + 1


@pytest.mark.parametrize(
    ("arguments", "told", "reason", "answer"),
    [
        ('{"a": 1,}<|call|>', '{"a": 1,}', "'}' cannot stand here in the JSON", ""),
        ('{"a": 1<|call|>', '{"a": 1', "the JSON is not closed", ""),
        ('{"a": 1<|start|>assistant<|message|>b', '{"a": 1', "the JSON is not closed", "b"),
        ("print(1)<|call|>", "print(1)", "'p' stands where the arguments should begin", ""),
        ("<|end|>", "", "the call has no arguments", ""),
    ],
)
def test_arguments_that_are_no_json(arguments, told, reason, answer):
    got = split(" to=functions.f<|channel|>commentary<|message|>" + arguments)
    assert got["calls"] == [("f", told, "malformed")]
    assert got["why"] == [reason]
    assert got["answer"] == answer


def test_a_call_without_arguments_at_the_end_is_open():
    got = split(" to=functions.f<|message|>")
    assert (got["answer"], got["calls"], got["why"]) == ("", [("f", "", "open")], [])


def test_a_brace_too_many_is_markup():
    got = split(" to=functions.f<|message|>{}}\n}<|call|>")
    assert (got["answer"], got["calls"], got["why"]) == ("", [("f", "{}", "complete")], [])


def test_text_after_arguments():
    got = split(" to=functions.f<|message|>{} so<|end|><|start|>assistant<|message|>a")
    assert got["calls"] == [("f", "{}", "complete")]
    assert (got["answer"], got["why"]) == ("soa", ["'s' stands outside of a message"])


def test_a_call_without_arguments():
    """vLLM gives empty text as the arguments; `<|call|>` says that the call is meant, so they are an empty object."""
    assert split(" to=functions.f<|message|><|call|>")["calls"] == [("f", "{}", "complete")]


def test_a_call_cut_short_is_not_complete():
    text = '<|channel|>commentary to=functions.f<|message|>{"a": [1]}'
    for end in range(text.index("{") + 1, len(text)):
        assert split(text[:end])["calls"] == [("f", text[text.index("{") : end], "open")]


@pytest.mark.parametrize(
    ("before", "text", "thinking", "answer"),
    [
        ("assistant", "<|channel|>analysis<|message|>a", "a", ""),
        ("assistant<|channel|>", "analysis<|message|>a", "a", ""),
        ("assistant<|channel|>analysis<|message|>So far", ", a", ", a", ""),
        ("assistant<|channel|>final<|message|>So far", ", a<|end|>", "", ", a"),
        ("assistant<|channel|>analysis<|message|>a<|end|>", "<|start|>assistant<|message|>b", "", "b"),
        ("user<|message|>a<|end|>", "<|start|>assistant<|channel|>final<|message|>b", "", "b"),
        ("", "assistant<|channel|>final<|message|>b", "", "b"),
        (None, "no harmony here, 1 <", "", "no harmony here, 1 <"),
        (None, "<|channel|>analysis<|message|>a", "a", ""),
        ("assistant", "<|start|>assistant<|channel|>analysis<|message|>a", "a", ""),
    ],
)
def test_where_the_prompt_ends(before, text, thinking, answer):
    got = split(text, before)
    assert (got["thinking"], got["answer"], got["why"]) == (thinking, answer, [])


def test_only_what_may_be_markup_is_held():
    splitter = Harmony("assistant<|channel|>final<|message|>")
    assert splitter.skippable is not None
    assert [piece.text for piece in splitter.feed("a < b <|x <|e")] == ["a < b <|x "]
    assert splitter.held == "<|e"
    assert splitter.skippable is None
    assert [piece.text for piece in splitter.finish()] == ["<|e"]


WORDS = st.sampled_from(
    [*MARKS, *MARKS, "analysis", "final", "commentary", "assistant", " assistant", " final", " to=functions.f", "json", '{"a": 1}', "{", "}", "<", "a", " ", "\n"]
)  # fmt: skip


@given(st.lists(WORDS, max_size=14), st.lists(st.integers(0, 200), max_size=4), st.sampled_from(["assistant", None]))
def test_every_cutting_gives_the_same_pieces(words, places, before):
    text = "".join(words)
    whole = run(Harmony(before), [text])
    assert run(Harmony(before), list(text)) == whole
    assert run(Harmony(before), cut(text, places)) == whole
    for name, arguments, state in told(whole)["calls"]:
        assert name
        if state == "complete":
            json.loads(arguments)


@given(st.lists(WORDS | st.just("so it is\n"), max_size=14))
def test_what_may_pass_comes_as_it_is_and_copies_and_states_are_independent(words):
    check_passing(Harmony, words, '{"<|')


# -- arguments in tags: Beam -------------------------------------------------------------------------------------------

DAYS = {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}, "tags": {"type": "array"}}
WEATHER = [{"name": "get_weather", "parameters": {"properties": DAYS}}]
TAGGED = "<|start|>assistant to=get_weather<|channel|>analysis <|constrain|>xml<|message|>"
THOUGHT = "<|channel|>analysis<|message|>Think.<|end|>"


def tagged(*pairs, end="<|call|>"):
    parameters = "".join(f'<rfl:parameter name="{key}">\n{value}\n</rfl:parameter>' for key, value in pairs)
    return f"{TAGGED}{parameters}{end}"


def split_tagged(text, tools=WEATHER):
    whole = run(Harmony(tools=tools), [text])
    assert run(Harmony(tools=tools), list(text)) == whole
    return told(whole)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("city", "Bern"), ("days", "3")], {"city": "Bern", "days": 3}),
        ([("city", 'a "b"\n< c'), ("days", "None")], {"city": 'a "b"\n< c', "days": None}),
        ([("tags", '["a", "<"]')], {"tags": ["a", "<"]}),
        ([], {}),
    ],
)
def test_arguments_in_tags_have_the_types_of_the_schema(pairs, expected):
    got = split_tagged(f"{THOUGHT}{tagged(*pairs)}<|start|>assistant<|channel|>final<|message|>So.")
    assert (got["thinking"], got["answer"], got["why"]) == ("Think.", "So.", [])
    assert [(name, json.loads(arguments), end) for name, arguments, end in got["calls"]] == [
        ("get_weather", expected, "complete")
    ]


def test_several_calls_in_tags_are_numbered_with_the_others():
    other = '<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Ulm"}<|call|>'
    pieces = run(Harmony(tools=WEATHER), [f"{tagged(('city', 'Bern'))}{other}{tagged(('days', '1'))}"])
    assert [piece.call for piece in pieces if piece.name] == [0, 1, 2]
    assert [end for _, _, end in told(pieces)["calls"]] == ["complete"] * 3


@pytest.mark.parametrize(
    ("text", "calls", "answer"),
    [
        (tagged(("city", "Bern"), end=""), [("get_weather", '{"city": "Bern"', "open")], ""),
        (TAGGED + '<rfl:parameter name="city">Be', [("get_weather", '{"city": "Be', "open")], ""),
        (TAGGED + "<rfl:param", [("get_weather", "", "open")], ""),
        (TAGGED + "words<|call|>", [], TAGGED + "words"),
        (TAGGED + '{"city": "Bern"}<|call|>', [("get_weather", '{"city": "Bern"}', "complete")], ""),
        (tagged().replace("get_weather", "pay"), [], TAGGED.replace("get_weather", "pay")),
    ],
)
def test_calls_in_tags_that_are_cut_short_or_none(text, calls, answer):
    got = split_tagged(text)
    assert (got["calls"], got["answer"]) == (calls, answer)


@pytest.mark.parametrize("end", ["<|call|>", "<|end|>", "<|start|>assistant"])
def test_a_value_without_its_closing_tag_leaves_the_call_incomplete(end):
    got = split_tagged(TAGGED + '<rfl:parameter name="city">\nBern' + end)
    assert [(name, arguments) for name, arguments, _ in got["calls"]] == [("get_weather", '{"city": "Bern')]
    assert got["calls"][0][2] != "complete"


@given(
    st.lists(
        st.sampled_from(
            [TAGGED, '<rfl:parameter name="city">', "\n", "</rfl:parameter>", "<|call|>", "{}", "x<", "é", '"', THOUGHT]
        ),
        max_size=9,
    ),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_any_mixture_of_tags_is_split_the_same_however_it_is_cut(parts, places):
    text = "".join(parts)
    assert run(Harmony(tools=WEATHER), cut(text, places)) == run(Harmony(tools=WEATHER), [text])


def test_states_of_calls_in_tags():
    words = [
        TAGGED,
        '<rfl:parameter name="city">',
        "Be",
        "rn",
        "</rfl:parameter>",
        '<rfl:parameter name="days">',
        "3",
        "<|call|>",
    ]
    check_passing(lambda: Harmony(tools=WEATHER), words, TAGGED)


@pytest.mark.parametrize("channel", ["commentary", "analysis"])
@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        (f"{THOUGHT}<|start|>assistant<|channel|>CH to=assistant<|channel|>final<|message|>Hi", "Think.", "Hi"),
        ("<|channel|>CH to=assistant<|channel|>analysis<|message|>hm<|end|>", "hm", ""),
        ("<|channel|>CH to=assistant<|start|>assistant<|channel|>final<|message|>Hi", "", "Hi"),
        ("<|channel|>CH to=assistant", "", ""),
        ("<|channel|>final<|message|>Hi<|end|><|start|>assistant<|channel|>CH to=assistant<|end|>", "", "Hi"),
    ],
)
def test_a_false_start_to_the_assistant_is_removed(channel, text, thinking, answer):
    text = text.replace("CH", channel)
    got = told(run(Harmony(), list(text)))
    assert got == told(run(Harmony(), [text]))
    assert (got["thinking"], got["answer"], got["calls"], got["why"]) == (thinking, answer, [], [])


def test_a_message_to_the_assistant_is_no_call():
    text = "<|channel|>commentary to=assistant<|message|>I look.<|end|>"
    for tools in ((), WEATHER):
        got = told(run(Harmony(tools=tools), list(text)))
        assert (got["answer"], got["calls"]) == ("I look.", [])
