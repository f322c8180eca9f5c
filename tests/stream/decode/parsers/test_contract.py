"""The contract of all blocks of tool calls, with every style: calls come back however the text is cut, and nothing is lost."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from splitting import check_passing, cut, run, told
from written_calls import write

from tokenweir.stream.decode.parsers.blocks.function_block import FunctionBlock
from tokenweir.stream.decode.parsers.tools import BLOCKS, ToolParser
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

NAMES = ["f", "天気", "été_2", "get_it"]
TOOLS = [
    {"name": name, "parameters": {"properties": {"x": {"type": "string"}, "n": {"type": "integer"}}}} for name in NAMES
]
ARGUMENTS = {"x": "say [a] {b}", "n": 3}
STYLES = [style for style in TOOL_STYLES.values() if style.name != "harmony"]
EACH = pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
READ = replace(TOOL_STYLES["hermes"], name="read", grammar="test objects", lists=False)
WORDS = CASES["words"]


def read(text, tools):
    """Read one call in JSON, as a registered function."""
    match json.loads(text):
        case {"name": str(name), "arguments": arguments}:
            yield name, arguments
        case _:
            raise ValueError("not a call")


@pytest.fixture(scope="module", autouse=True)
def registered():
    BLOCKS["test objects"] = lambda style, schemas: FunctionBlock(read, style, schemas)
    yield
    del BLOCKS["test objects"]


def parser(style):
    return ToolParser(style, TOOLS)


def read_calls(got):
    return [(name, json.loads(arguments), end) for name, arguments, end in got["calls"]]


def words_of(style):
    """Words of a style: markup whole and cut, calls whole and without their beginning, and letters of all grammars."""
    marks = [mark for mark in style.marks if mark]
    whole = write(style, ("f", {"x": "b"}))
    return [
        *marks,
        *(mark[:-1] for mark in marks),
        *WORDS,
        whole,
        whole[len(style.opens[0]) :],
        whole[:-9],
        '{"name": "f", ',
    ]


DRAWN = st.sampled_from([*STYLES, READ]).flatmap(
    lambda style: st.tuples(st.just(style), st.lists(st.sampled_from(words_of(style)), max_size=12))
)


def test_blocks_have_the_members_of_the_protocol():
    members = set(CASES["blocks_have_the_members_of_the_protocol"])
    for style in (*STYLES, READ):
        block = BLOCKS[style.grammar](style, {})
        assert members < set(dir(block)) and block.call == -1


@EACH
@pytest.mark.parametrize("name", NAMES)
def test_calls_come_back(style, name):
    text = "Let me see.\n" + write(style, (name, ARGUMENTS), ("f", {}))
    whole = run(parser(style), [text])
    assert run(parser(style), list(text)) == whole
    got = told(whole)
    assert read_calls(got) == [(name, ARGUMENTS, "complete"), ("f", {}, "complete")]
    assert (got["answer"].rstrip(), got["why"]) == ("Let me see.", [])


@EACH
def test_a_call_cut_short_anywhere_is_not_complete_and_loses_nothing(style):
    text = write(style, ("f", ARGUMENTS))
    ends = text.rindex("3") + 1
    for end in range(len(text)):
        got = told(run(parser(style), [text[:end]]))
        assert end > ends or all(state == "open" for *_, state in got["calls"])
        assert got["calls"] or got["answer"] == text[:end]


@EACH
def test_a_mention_of_markup_is_text_and_a_call_behind_it_is_one(style):
    for mention in (f"Say `{style.opens[0]}`.\n", f"It is {style.opens[0][:-1]}", style.opens[0]):
        got = told(run(parser(style), [mention]))
        assert (got["answer"], got["calls"]) == (mention, [])
    mention = f"Say `{style.opens[0]}`.\n"
    got = told(run(parser(style), [mention + write(style, ("f", {"n": 1}))]))
    assert read_calls(got) == [("f", {"n": 1}, "complete")]
    assert got["answer"].rstrip() == mention.rstrip()


@given(DRAWN, st.lists(st.integers(0, 300), max_size=5))
def test_any_mixture_is_split_the_same_however_it_is_cut(drawn, places):
    style, words = drawn
    text = "".join(words)
    whole = run(parser(style), [text])
    assert run(parser(style), list(text)) == whole
    assert run(parser(style), cut(text, places)) == whole
    assert all(
        name and (end != "complete" or json.loads(arguments)) is not False
        for name, arguments, end in told(whole)["calls"]
    )


@given(DRAWN)
def test_what_may_bypass_a_block_and_states_and_copies(drawn):
    style, words = drawn
    check_passing(lambda: parser(style), words, write(style, ("f", {"x": "x"})))
