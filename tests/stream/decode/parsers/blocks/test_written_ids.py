"""Ids of calls that models write in place of names: Kimi's."""

from __future__ import annotations

import pytest
from case_tables import cases
from splitting import split_calls

from tokenweir.stream.decode.parsers.blocks.written_ids import function_of

CASES = cases(__file__)

FUNCTIONS = ("get_weather", "exec", "read_file", "v2", "step_1", "step")
TOOLS = [{"name": name} for name in FUNCTIONS]
BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def call(head):
    return f'<|tool_call_begin|>{head}<|tool_call_argument_begin|>{{"a": 1}}<|tool_call_end|>'


READ = CASES["read"]


@pytest.mark.parametrize(("head", "name"), READ)
def test_an_id_names_the_only_function_that_it_can_stand_for(head, name):
    got = split_calls("kimi-k2", f"{BEGIN}{call(head)}{END}", TOOLS)
    assert (got["calls"], got["answer"]) == ([(name, '{"a": 1}', "complete")], "")


@pytest.mark.parametrize(
    "head", ["functions_step_1", "functions_pay_1", "functions_exec_1234567", "exec_a1", "functions_"]
)
def test_an_id_with_several_readings_or_none_is_text(head):
    text = f"{BEGIN}{call(head)}{END}"
    got = split_calls("kimi-k2", text, TOOLS)
    assert (got["calls"], got["answer"]) == ([], text)


@pytest.mark.parametrize(("head", "name"), READ[:4])
def test_without_tools_a_name_is_taken_as_it_is_written(head, name):
    assert split_calls("kimi-k2", BEGIN + call(head) + END)["calls"] == [(name, '{"a": 1}', "complete")]
    assert split_calls("kimi-k2", BEGIN + call("functions_f_1") + END)["calls"][0][0] == "functions_f_1"


def test_other_styles_have_names_and_no_ids():
    got = split_calls("hermes", '<tool_call>{"name": "functions_exec_1", "arguments": {}}</tool_call>', TOOLS)
    assert got["calls"] == []


@pytest.mark.parametrize("begin", [BEGIN, "<|tool_call_section_begin|>", ""])
@pytest.mark.parametrize("end", [END, "<|tool_call_section_end|>", f"<|tool_call_section_end|>\n{END}"])
def test_the_tags_of_a_section_may_be_in_the_singular(begin, end):
    for calls in (("exec:0",), ("exec:0", "functions_exec_1")):
        got = split_calls("kimi-k2", f"I look.{begin}{''.join(map(call, calls))}{end} So.", TOOLS)
        assert [name for name, _, _ in got["calls"]] == ["exec"] * len(calls)
        assert (got["answer"].split(), got["why"]) == (["I", "look.", "So."], [])


def test_readings_are_few_however_long_the_name_is():
    assert function_of("functions" * 100 + "1" * 100, FUNCTIONS) == "functions" * 100 + "1" * 100
