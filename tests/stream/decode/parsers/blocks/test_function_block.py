"""Calls that a registered function reads."""

from __future__ import annotations

import json

import pytest
from case_tables import cases
from splitting import check_passing, run, split_calls, told

import tokenweir
from tokenweir.stream.decode.parsers.blocks.function_block import MAX_BLOCK, FunctionBlock
from tokenweir.stream.decode.parsers.schemas import ToolSchemas
from tokenweir.stream.decode.parsers.tools import BLOCKS, ToolParser, register_grammar
from tokenweir.templates.styles.grammars import ToolStyle

CASES = cases(__file__)

STYLE = ToolStyle(name="run", grammar="test lines", opens=("<run>", "<go>"), closes="</run>")
TOOLS = [{"name": "look", "parameters": {"properties": {"days": {"type": "integer"}}}}, {"name": "move"}]


def read(text, tools):
    """Calls apart by an empty line: a name, then lines of a key and a value."""
    for call in text.split("\n\n"):
        name, *lines = call.strip().split("\n")
        if " " in name:
            raise ValueError(f"{name} is not a name")
        properties = tools.get(name, {}).get("properties", {})
        pairs = (line.split(": ") for line in lines)
        yield name, {key: int(value) if key in properties else value for key, value in pairs}


@pytest.fixture(scope="module", autouse=True)
def registered():
    register_grammar("test lines", read)
    yield
    del BLOCKS["test lines"]


def parser():
    return ToolParser(STYLE, TOOLS)


def test_calls_come_back():
    got = split_calls(STYLE, "I look. <run>look\ndays: 3\n\nmove\nto: Bern, Ulm\n</run> So.", TOOLS)
    assert got["answer"] == "I look.  So."
    assert got["calls"] == [("look", '{"days": 3}', "complete"), ("move", '{"to": "Bern, Ulm"}', "complete")]


@pytest.mark.parametrize(("block", "why"), CASES["a_block_that_the_function_refuses_is_answer_with_its_reason"])
def test_a_block_that_the_function_refuses_is_answer_with_its_reason(block, why):
    text = f"<run>{block}</run>."
    got = split_calls(STYLE, text, TOOLS)
    assert (got["answer"], got["calls"], got["why"]) == (text, [], [why])


def test_an_unfinished_block_is_answer():
    got = split_calls(STYLE, "<run>look\ndays: 3", TOOLS)
    assert (got["answer"], got["why"]) == ("<run>look\ndays: 3", ["the answer ends inside a tool call"])


@pytest.mark.parametrize("more", [0, 1])
def test_a_block_has_a_bound(more):
    block = "look\nx: " + "a" * (MAX_BLOCK - 8 + more)
    whole = run(parser(), [f"<run>{block}</run><run>look</run>"])
    near = MAX_BLOCK // 1_000 * 1_000 - 2_000  # from here on character by character
    pieces = [*(block[at : at + 1_000] for at in range(0, near, 1_000)), *block[near:]]
    assert run(parser(), ["<run>", *pieces, "</ru", "n><run>look</run>"]) == whole
    calls = [(name, len(json.loads(arguments).get("x", ""))) for name, arguments, _ in told(whole)["calls"]]
    assert calls == ([("look", 0)] if more else [("look", MAX_BLOCK - 8), ("look", 0)])
    assert told(whole)["why"] == [f"no '</run>' comes within {MAX_BLOCK} characters"] * more


@pytest.mark.parametrize("size", [1, 3, 50])
def test_copies_and_restored_states_go_on_alike(size):
    text = "So <run>look\ndays: 3\n</run> and <go>no name</run>. <run>look"
    check_passing(parser, [text[at : at + size] for at in range(0, len(text), size)], "<run>move</run>")


@pytest.mark.parametrize(
    ("held", "opened", "why"),
    [
        ("<run>look", 4, "this text opens no block"),
        ("<ran>look", 5, "this text opens no block"),
        ("<run>" + "a" * (MAX_BLOCK + 1), 5, f"more than {MAX_BLOCK} characters are held"),
    ],
)
def test_forged_states_are_refused(held, opened, why):
    block = FunctionBlock(read, STYLE, ToolSchemas({}))
    block.begin("<run>", -1)
    whole = "<run>" + held[5:][:MAX_BLOCK]
    block.restore([whole, "", "", False, -1, "opened", 5])
    assert block.held == whole
    with pytest.raises(ValueError, match=why):
        block.restore([held, "", "", False, -1, "opened", opened])


def registered_as(result):
    BLOCKS.pop("test result", None)
    register_grammar("test result", lambda text, tools: result)
    return ToolStyle(name="odd", grammar="test result", opens=("<run>",), closes="</run>")


@pytest.fixture
def given_as():
    yield registered_as
    BLOCKS.pop("test result", None)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ([], "no call is in the block"),
        ([("f", {"x": float("nan")})], "Out of range float values are not JSON compliant"),
        ([("f", {"x": "\ud800"})], "'utf-8' codec can't encode character"),
    ],
)
def test_results_that_are_no_call_are_answer(given_as, result, why):
    got = split_calls(given_as(result), "<run>x</run>")
    assert got["answer"] == "<run>x</run>"
    assert got["why"][0].startswith(why)


@pytest.mark.parametrize(
    "result", [[(1, {})], [("f", "{}")], [("f", None)], ("f", {}), {"f": {}}, ["fg"], [("f",)], [None], None, 5]
)
def test_results_of_another_type_are_the_functions_mistake(given_as, result):
    with pytest.raises(TypeError, match="^a grammar's function gave .* (as a call, not its name|not several calls)"):
        ToolParser(given_as(result)).feed("<run>x</run>")


def test_a_name_is_taken_once():
    with pytest.raises(ValueError, match="^there is a grammar 'json' already$"):
        register_grammar("json", read)


@pytest.mark.parametrize(
    ("name", "function", "message"),
    [
        (None, read, "^name must be str, not NoneType$"),
        (["a"], read, "^name must be str, not list$"),
        ("test other", None, "^read must be a function, not NoneType$"),
        ("test other", "read", "^read must be a function, not str$"),
    ],
)
def test_what_cannot_be_registered(name, function, message):
    with pytest.raises(TypeError, match=message):
        register_grammar(name, function)
    assert "test other" not in BLOCKS


def test_a_block_needs_a_closing_text():
    style = ToolStyle(name="open", grammar="test lines", opens=("<run>",))
    with pytest.raises(
        ValueError, match="^tool style 'open': a block of the grammar 'test lines' needs a closing text$"
    ):
        ToolParser(style)


def test_decoders_take_a_registered_grammar():
    tokenizer = tokenweir.Tokenizer.default()
    decoder = tokenweir.ChatDecoder(tokenizer, tool_style=STYLE, tools=TOOLS)
    ids = tokenizer.encode("<run>look\ndays: 3\n</run>So.")
    deltas = [delta for token_id in ids for delta in decoder.feed([token_id])] + decoder.finish()
    calls = [delta for delta in deltas if isinstance(delta, tokenweir.ToolCallDelta)]
    assert (calls[0].name, "".join(call.arguments for call in calls), calls[-1].complete) == (
        "look",
        '{"days": 3}',
        True,
    )
    assert [token_id for delta in deltas for token_id in delta.token_ids] == ids
