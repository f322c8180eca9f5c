"""Calls of functions that the request does not have: text, where the request has tools."""

from __future__ import annotations

import json

import pytest
from drawn_answers import HEADERS
from splitting import check_passing, run, split_calls, told

import tokenweir
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.stream.events.merge import merge
from tokenweir.templates.styles.grammars import LiteralStyle, ParameterStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

STYLES = [style for style in TOOL_STYLES.values() if style.name != "harmony"]
TOOLS = [{"name": "g", "parameters": {"properties": {"a": {"type": "integer"}}}}]


def call(style, name):
    """A call without the text around its block."""
    if isinstance(style, ParameterStyle):
        ends = "\n" if "\n" in style.name_stops else style.name_ends[0]
        return f"{''.join(style.leads)}{style.call_opens}{name}{ends}{style.name_tail}{style.call_closes}"
    if isinstance(style, LiteralStyle):
        return f"{style.prefixes[0] if style.prefixes else ''}{name}{style.name_suffix}{style.brackets}"
    if style.grammar == "python objects":
        return f"[{{'name': '{name}', 'arguments': {{}}}}]"
    if header := HEADERS.get(style.name):
        inner = name.join(header.rsplit("f", 1)) + "{}"
    elif not style.name_keys:
        inner = f'{{"{name}": {{}}}}'
    else:
        inner = f'{{"{style.name_keys[0]}": "{name}", "{style.argument_keys[0]}": {{}}}}'
    inner = inner if style.objects or header else f"[{inner}]"
    return f"{style.call_opens}{inner}{''.join(style.tails[:1])}{style.call_closes}"


def block(style, *names):
    opener = "" if style.opens[0] == style.call_opens else style.opens[0].removesuffix("[")
    listed = f"[{call(style, names[0])}]" if opener == "functools" else "".join(call(style, name) for name in names)
    return f"{opener}{listed}{style.closes}"


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_of_another_function_is_text(style):
    text = f"It says {block(style, 'f')}"
    assert split_calls(style, text, [])["calls"] == [("f", "{}", "complete")]
    assert split_calls(style, text, [{"name": "f"}])["calls"] == [("f", "{}", "complete")]
    got = split_calls(style, text, TOOLS)
    assert (got["calls"], got["answer"]) == ([], text)
    assert got["why"] in ([], ["'f' is no function of the request"])


@pytest.mark.parametrize("name", [["g"], {}, 1, None, True], ids=str)
@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_a_call_whose_name_is_no_text_is_no_call(style, name):
    quote = "'" if style.grammar == "python objects" else '"'
    for written in (block(style, "NAME"), call(style, "NAME")):
        text = written.replace(f"{quote}NAME{quote}", str(name) if quote == "'" else json.dumps(name))
        if "NAME" not in text:
            got = split_calls(style, text, TOOLS)
            assert (got["calls"], got["answer"]) == ([], text)


@pytest.mark.parametrize("style", [style for style in STYLES if style.closes], ids=lambda style: style.name)
def test_calls_of_declared_functions_are_numbered_as_if_they_stood_alone(style):
    quoted, called = block(style, "f"), block(style, "g")
    pieces = run(ToolParser(style, TOOLS), [f"{quoted} {called} {quoted} {called}"])
    assert told(pieces)["calls"] == [("g", "{}", "complete")] * 2
    assert [piece.call for piece in pieces if piece.name] == [0, 1]
    assert {piece.call for piece in pieces if piece.channel is Channel.TOOL_CALL} == {0, 1}
    assert told(pieces)["answer"].split() == f"{quoted} {quoted}".split()


@pytest.mark.parametrize("style", [style for style in STYLES if style.call_opens], ids=lambda style: style.name)
def test_one_block_may_have_both(style):
    got = split_calls(style, block(style, "f", "g", "f", "g"), TOOLS)
    assert got["calls"] == [("g", "{}", "complete")] * 2


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_what_may_bypass_the_splitter_and_states(style):
    words = [block(style, "f")[:-1], block(style, "f")[-1], " ", block(style, "g"), "x", "\n", block(style, "f", "g")]
    check_passing(lambda: ToolParser(style, TOOLS), words, block(style, "f"))


@pytest.mark.parametrize("step", [1, 5, 999])
def test_a_decoder_gives_the_text_with_its_ids(make_tok, step):
    tok = make_tok(*(AddedToken(tag, special=False) for tag in ("<tool_call>", "</tool_call>")))
    text = '<tool_call>{"name": "f", "arguments": {"a": "long enough to pass"}}</tool_call> <tool_call>{"name": "g", "arguments": {}}</tool_call>'
    ids = tok.encode(text)
    decoder = tokenweir.ChatDecoder(tok, tool_style="hermes", tools=TOOLS)
    deltas = []
    for start in range(0, len(ids), step):
        deltas += decoder.feed(ids[start : start + step])
        decoder = tokenweir.ChatDecoder.from_state(tok, decoder.state(), tool_style="hermes", tools=TOOLS)
    deltas = merge(deltas + decoder.finish())
    assert deltas[0].text == text[: text.index("</tool_call>") + 12]
    assert [delta.name for delta in deltas if isinstance(delta, tokenweir.ToolCallDelta) and delta.name] == ["g"]
    assert [i for delta in deltas for i in delta.token_ids] == ids
