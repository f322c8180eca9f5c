"""Calls in JSON, in every style; `examples/calls.toml` has single answers."""

from __future__ import annotations

import pytest
from case_tables import cases
from splitting import check_passing, run, told
from splitting import split_calls as split
from written_calls import write

from tokenweir.stream.decode.parsers.blocks.json_block import JsonBlock
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

WEATHER = '{"city": "Tōkyō \\"}\\u00e9", "days": [1, {"x": null}]}'
MAX_HELD = JsonBlock.MAX_HELD
STYLES = [style for style in TOOL_STYLES.values() if style.grammar == "json" and style.name != "harmony"]
"""Others have tests of their own: test_parameter_block.py, test_literal_block.py."""


def answer(text):
    return {"answer": text, "thinking": "", "calls": [], "why": []}


# -- every style -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_arguments_go_out_as_they_come(style):
    text = write(style, ("get_weather", WEATHER))
    parser, taken = ToolParser(style), ""
    end = text.index(WEATHER) + len(WEATHER)
    for place, char in enumerate(text[:end]):
        taken += "".join(piece.text for piece in parser.feed(char) if piece.channel is Channel.TOOL_CALL)
        assert taken == text[text.index(WEATHER) : place + 1]


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
@pytest.mark.parametrize("mention", ["Say `{}`.\n", "{}:\n", "{} {} "])
def test_a_call_after_a_mention_is_one(style, mention):
    mention = mention.replace("{}", style.opens[0])
    got = split(style, mention + write(style, ("f", '{"a": 1}')))
    assert got["calls"] == [("f", '{"a": 1}', "complete")]
    assert got["answer"].rstrip() == mention.rstrip()


# -- what the peers' tests say, one style after the other --------------------------------------------------------------


def test_a_second_word_in_a_header_may_not_pass():
    """The white space before it waits, and the word shows that there is no header."""
    check_passing(lambda: ToolParser(TOOL_STYLES["solar-open"]), ["<|tool_call:begin|>", '"arguments": ', "}"], '{"')


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
    for text in CASES["sarashina_lists_that_are_no_calls"]:
        assert split("sarashina", text, [{"name": "look"}]) == answer(text)
    got = split("sarashina", "<|tool_calls|>[{'name': f(), 'arguments': {}}] So.")
    assert (got["calls"], got["answer"][-4:]) == ([], " So.")
    long = "<|tool_calls|>[{'name': 'f', 'arguments': {'a': '" + "\\'" * MAX_HELD
    assert told(run(ToolParser("sarashina"), [long]))["answer"] == long


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
