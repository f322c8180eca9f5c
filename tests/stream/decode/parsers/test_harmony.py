"""Harmony, as gpt-oss writes it; what SGLang's and vLLM's tests of it say is restated, and where it is decided otherwise."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, told

from tokenweir.stream.decode.parsers.harmony import MARKS, Harmony
from tokenweir.stream.events.deltas import Channel


def split(text, before="assistant"):
    whole = run(Harmony(before), [text])
    assert run(Harmony(before), list(text)) == whole
    return told(whole)


def test_the_name_goes_out_with_the_first_character_of_the_arguments():
    splitter = Harmony()
    assert splitter.feed("<|channel|>commentary to=functions.f<|message|>\n") == []
    assert splitter.channel is Channel.TOOL_CALL
    name, arguments = splitter.feed('{"a')
    assert (name.name, name.text, arguments.name, arguments.text) == ("f", "", "", '{"a')
    assert name.source == "<|channel|>commentary to=functions.f<|message|>\n"


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


def test_several_calls_in_tags_are_numbered_with_the_others():
    other = '<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Ulm"}<|call|>'
    pieces = run(Harmony(tools=WEATHER), [f"{tagged(('city', 'Bern'))}{other}{tagged(('days', '1'))}"])
    assert [piece.call for piece in pieces if piece.name] == [0, 1, 2]
    assert [end for _, _, end in told(pieces)["calls"]] == ["complete"] * 3


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
