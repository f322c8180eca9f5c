"""Calls in JSON, in every style; `examples/calls.toml` has single answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from splitting import check_passing, cut, run, told
from splitting import split_calls as split

from tokenweir.stream.decode.parsers.blocks.json_block import JsonBlock
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.tools import TOOL_STYLES

WEATHER = '{"city": "Tōkyō \\"}\\u00e9", "days": [1, {"x": null}]}'
MAX_HELD = JsonBlock.MAX_HELD
STYLES = [style for style in TOOL_STYLES.values() if style.grammar == "json" and style.name != "harmony"]
"""Others have tests of their own: test_parameter_block.py, test_literal_block.py."""


def write(style, *calls):
    """Write calls, each a name and the text of its arguments, as a model of the style does."""
    objects = [call_object(style, name, arguments) for name, arguments in calls]
    match style.name:
        case "deepseek":
            return block(style, [f"{name}<｜tool▁sep｜>{arguments}" for name, arguments in calls])
        case "kimi-k2":
            return block(
                style,
                [
                    f"functions.{name}:{number} <|tool_call_argument_begin|>{arguments}"
                    for number, (name, arguments) in enumerate(calls)
                ],
            )
        case "plamo3":
            return block(
                style,
                [
                    f"<|plamo:begin_tool_name:plamo|>{name}<|plamo:end_tool_name:plamo|>"
                    "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>"
                    f"{arguments}<|plamo:end_tool_arguments:plamo|>"
                    for name, arguments in calls
                ],
            )
        case "mirothinker":
            head = "\n<server_name>it</server_name>\n<tool_name>{}</tool_name>\n<arguments>\n{}\n</arguments>"
            return style.opens[0] + "".join(head.format(*call) for call in calls) + style.closes
        case "step-audio-2":
            return "".join(f"{style.opens[0]}{name}\n{arguments}{style.closes}" for name, arguments in calls)
        case "yandexgpt":
            return "\n".join(f"{style.opens[0]}{name}\n{arguments}" for name, arguments in calls)
        case "solar-open":
            return "".join(
                f"{style.opens[0]}id-{number}<|tool_call:name|>{name}<|tool_call:args|>{arguments}{style.closes}"
                for number, (name, arguments) in enumerate(calls)
            )
        case "granite-20b-fc":
            return "".join(f"{style.opens[0]} {text}\n" for text in objects)
        case "functionary-v3.2":
            return "".join(f">>>{name}\n{arguments}" for name, arguments in calls)
        case "functionary":
            return "".join(f"<function={name}>{arguments}</function>" for name, arguments in calls)
        case "llama3":
            return style.opens[0] + "; ".join(objects)
    if style.call_opens:
        return block(style, objects)
    if style.lists and style.name != "hermes":
        return f"{style.opens[0].removesuffix('[')}[{', '.join(objects)}]{style.closes}"
    return "\n".join(f"{style.opens[0]}\n{text}\n{style.closes}" for text in objects)


def call_object(style, name, arguments):
    if not style.name_keys:
        return f'{{"{name}": {arguments}}}'
    return f'{{"{style.name_keys[0]}": "{name}", "{style.argument_keys[0]}": {arguments}}}'


def block(style, texts):
    return style.opens[0] + "".join(style.call_opens + text + style.call_closes for text in texts) + style.closes


def answer(text):
    return {"answer": text, "thinking": "", "calls": [], "why": []}


# -- every style -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_calls_come_with_the_name_first_and_the_arguments_as_written(style):
    text = "Let me see.\n" + write(style, ("get_weather", WEATHER), ("now", "{}"))
    got = split(style, text)
    assert got["calls"] == [("get_weather", WEATHER, "complete"), ("now", "{}", "complete")]
    assert got["answer"].rstrip() == "Let me see."
    assert got["why"] == []


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("name", ["天気", "été_2", "get-it.now"])
def test_a_name_has_any_letters(style, name):
    assert split(style, write(style, (name, "{}")))["calls"] == [(name, "{}", "complete")]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_go_out_as_they_come(style):
    text = write(style, ("get_weather", WEATHER))
    parser, taken = ToolParser(style), ""
    end = text.index(WEATHER) + len(WEATHER)
    for place, char in enumerate(text[:end]):
        taken += "".join(piece.text for piece in parser.feed(char) if piece.channel is Channel.TOOL_CALL)
        assert taken == text[text.index(WEATHER) : place + 1]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_cut_short_anywhere_is_never_complete(style):
    text = write(style, ("get_weather", WEATHER))
    whole = text.index(WEATHER) + len(WEATHER) + (0 if style.header and not style.lists else 1)
    for end in range(len(text)):
        got = told(run(ToolParser(style), [text[:end]]))
        if end < whole:
            assert all(state == "open" and WEATHER.startswith(args) for _, args, state in got["calls"])
        if not got["calls"]:  # nothing is lost
            assert got["answer"] == text[:end]


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_that_are_no_json_break_the_call_and_later_calls_live(style):
    text = write(style, ("bad", '{"a": 1,}'))
    got = split(style, text + "\n" + write(style, ("good", "{}")))
    name, arguments, end = got["calls"][0]
    assert (name, end) == ("bad", "malformed")
    assert got["calls"][1:] == [("good", "{}", "complete")]
    assert got["why"] == ["'}' cannot stand here in the JSON"]
    if style.doubtful:  # perhaps no call
        assert (arguments, got["answer"][0]) == ('{"a": 1,', "}")
    else:
        assert arguments.startswith('{"a": 1,}')
        assert got["answer"].strip() == ""


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_mention_in_a_sentence_comes_out_as_text(style):
    for text in (f"the text {style.opens[0]} begins a call", f"{style.opens[0]}", f"{style.opens[0][:-1]}"):
        got = split(style, text)
        assert (got["answer"], got["calls"]) == (text, [])


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
@pytest.mark.parametrize("mention", ["Say `{}`.\n", "{}:\n", "{} {} "])
def test_a_call_after_a_mention_is_one(style, mention):
    mention = mention.replace("{}", style.opens[0])
    got = split(style, mention + write(style, ("f", '{"a": 1}')))
    assert got["calls"] == [("f", '{"a": 1}', "complete")]
    assert got["answer"].rstrip() == mention.rstrip()


WORDS = {
    style.name: [
        *style.opens,
        style.opens[0][:-1],
        *filter(None, (style.closes, style.call_opens, style.call_closes)),
        *style.tails,
        *"{}[],;: \n<",
        '"name"',
        '"tool_name": "f"',
        '"arguments": ',
        '{"name": "f", "arguments": ',
        '{"a": 1}',
        "word",
        write(style, ("f", '{"b": 2}')),
        write(style, ("f", '{"b": 2}'))[len(style.opens[0]) :],
    ]
    for style in STYLES
}


@given(st.sampled_from(STYLES), st.data())
def test_every_cutting_gives_the_same_pieces(style, data):
    words = data.draw(st.lists(st.sampled_from(WORDS[style.name]), max_size=8))
    text = "".join(words)
    whole = run(ToolParser(style), [text])
    assert run(ToolParser(style), list(text)) == whole
    assert run(ToolParser(style), cut(text, data.draw(st.lists(st.integers(0, 200), max_size=4)))) == whole
    for name, arguments, state in told(whole)["calls"]:
        assert name
        if state == "complete":
            json.loads(arguments)


@given(st.sampled_from(STYLES), st.data())
def test_what_may_pass_comes_as_it_is_and_copies_and_states_are_independent(style, data):
    words = data.draw(st.lists(st.sampled_from([*WORDS[style.name], "so it is", "line\n"]), max_size=8))
    check_passing(lambda: ToolParser(style), words, '{"')


# -- what the peers' tests say, one style after the other --------------------------------------------------------------


def test_a_second_word_in_a_header_may_not_pass():
    """The white space before it waits, and the word shows that there is no header."""
    check_passing(lambda: ToolParser(TOOL_STYLES["solar-open"]), ["<|tool_call:begin|>", '"arguments": ', "}"], '{"')


def test_text_without_calls_passes():
    for style in STYLES:
        text = "Nothing of this has to do with tools; 1 < 2 and [a] is no call."
        assert split(style, text) == answer(text)


def test_arguments_before_the_name_wait_for_it():
    text = '[TOOL_CALLS] [{"arguments":{"name": "John Doe"}, "name": "get_age"}]'
    assert split("mistral", text)["calls"] == [("get_age", '{"name": "John Doe"}', "complete")]
    pieces = ToolParser("mistral").feed(text)
    assert [(piece.name, piece.text) for piece in pieces[:2]] == [("get_age", ""), ("", '{"name": "John Doe"}')]
    assert pieces[0].source == text[: text.index(', "name": "get_age"') + len(', "name": "get_age"')]


def test_a_name_that_does_not_come_is_not_waited_for_for_ever():
    text = '<tool_call>{"arguments": {"a": "' + "x" * MAX_HELD
    parser = ToolParser("hermes")
    pieces = [piece for start in range(0, len(text), 999) for piece in parser.feed(text[start : start + 999])]
    assert pieces[0].source == text[:MAX_HELD]
    assert pieces[0].malformed == f"no name comes within {MAX_HELD} characters"
    assert not parser.held
    assert told(run(ToolParser("hermes"), [text]))["answer"] == text


def test_sarashina_lists_that_are_no_calls():
    for text in (
        "[1] A note.",
        "[{'name': 'unknown', 'arguments': {}}]",
        "[{'a': 1}]",
        "[{'name': 'look', 'argu",
        "[]",
    ):
        assert split("sarashina", text, [{"name": "look"}]) == answer(text)
    got = split("sarashina", "<|tool_calls|>[{'name': f(), 'arguments': {}}] So.")
    assert (got["calls"], got["answer"][-4:]) == ([], " So.")
    long = "<|tool_calls|>[{'name': 'f', 'arguments': {'a': '" + "\\'" * MAX_HELD
    assert told(run(ToolParser("sarashina"), [long]))["answer"] == long


SARASHINA = [
    "<|tool_calls|>",
    "[",
    "]",
    "{'name': 'f', 'arguments': {",
    "}",
    "}}",
    ",",
    "'",
    '"',
    "\\",
    " ",
    "x",
    "{'name': 'g'}",
]


@given(st.lists(st.sampled_from(SARASHINA), max_size=12), st.lists(st.integers(0, 200), max_size=4))
def test_sarashina_does_not_depend_on_the_cutting(parts, places):
    text = "".join(parts)
    whole = run(ToolParser("sarashina"), [text])
    assert run(ToolParser("sarashina"), cut(text, places)) == whole
    assert run(ToolParser("sarashina"), list(text)) == whole


@given(st.lists(st.sampled_from(SARASHINA), max_size=12))
def test_sarashina_states_are_independent(words):
    check_passing(lambda: ToolParser("sarashina"), words, "[{'")


# -- malformed calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "named"), [("<x", False), ("Tx", False), ("[T", True), ("tx", True), ("-x", True)])
def test_the_name_goes_out_if_a_value_begins_however_soon_it_breaks(value, named):
    before, after = '<tool_call>{"name": "f", "arguments": ', f"{value}}}</tool_call>"
    whole = run(ToolParser("hermes"), [before + after])
    assert any(piece.name for piece in whole) is named
    for place in range(len(after) + 1):
        assert run(ToolParser("hermes"), [before, after[:place], after[place:]]) == whole
        assert run(ToolParser("hermes"), [before + after[:place], after[place:]]) == whole


def test_white_space_has_an_end():
    text = "[TOOL_CALLS]" + " " * 2 * MAX_HELD
    parser = ToolParser("mistral")
    parser.feed(text)
    assert not parser.held
    assert told(run(ToolParser("mistral"), [text[:9], text[9:]]))["answer"] == text
