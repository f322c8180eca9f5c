"""Calls of functions that the request does not have: text, where the request has tools."""

from __future__ import annotations

import json

import pytest
from drawn_answers import HEADERS
from splitting import check_passing, run, split_calls, told

import tokenweir
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.parsers.combined import ThinkingAndTools
from tokenweir.stream.decode.parsers.harmony import Harmony
from tokenweir.stream.decode.parsers.inkling import Inkling
from tokenweir.stream.decode.parsers.muse import Muse
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel
from tokenweir.stream.events.merge import merge
from tokenweir.templates.styles.grammars import LiteralStyle, ParameterStyle
from tokenweir.templates.styles.tools import TOOL_STYLES

STYLES = [style for style in TOOL_STYLES.values() if style.name != "harmony"]
TOOLS = [{"name": "g", "parameters": {"properties": {"a": {"type": "integer"}}}}]
BARE = [style for style in STYLES if style.bare]


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


@pytest.mark.parametrize(
    ("style", "text"),
    [
        (
            "cohere",
            '<|START_ACTION|>[{"tool_name": "f", "parameters": {}}, {"tool_name": "g", "parameters": {}}]<|END_ACTION|>',
        ),
        ("lfm2", "<|tool_call_start|>[f(a=1), g()]<|tool_call_end|>"),
        ("gemma4", "<|tool_call>call:f{a:1}call:g{}<tool_call|>"),
    ],
)
def test_lists_may_have_both(style, text):
    got = split_calls(style, text, TOOLS)
    assert got["calls"] == [("g", "{}", "complete")]
    assert got["answer"]


def test_arguments_of_the_text_are_as_they_were_written():
    text = '<tool_call>\n<function=f>\n<parameter=a>\nx"\\\n</parameter>\n<parameter=b>\n1\n</parameter>\n</function>\n</tool_call>'
    got = split_calls("qwen3-coder", f"{text} So.", TOOLS)
    assert (got["calls"], got["answer"]) == ([], f"{text} So.")


@pytest.mark.parametrize("end", range(12, 60, 3))
def test_a_call_that_is_cut_short_is_text(end):
    text = '<tool_call>{"name": "f", "arguments": {"a": "b"}}</tool_call>'[:end]
    assert split_calls("hermes", text, TOOLS)["answer"] == text


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.name)
def test_what_may_bypass_the_splitter_and_states(style):
    words = [block(style, "f")[:-1], block(style, "f")[-1], " ", block(style, "g"), "x", "\n", block(style, "f", "g")]
    check_passing(lambda: ToolParser(style, TOOLS), words, block(style, "f"))


def test_thinking_goes_on_behind_it():
    def split(parts):
        return told(run(ThinkingAndTools(ReasoningParser("think"), ToolParser("hermes", TOOLS)), parts))

    quoted = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    text = f"{quoted}\n<think>hm</think>So."
    assert split([text]) == split(list(text))
    assert (split([text])["answer"], split([text])["thinking"]) == (f"{quoted}\nSo.", "hm")


@pytest.mark.parametrize(
    ("splitter", "text", "shown"),
    [
        (
            lambda: Harmony(tools=TOOLS),
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>',
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}',
        ),
        (
            lambda: Harmony(tools=TOOLS),
            "<|channel|>analysis to=python code<|message|>print()<|call|>",
            "<|channel|>analysis to=python code<|message|>print()",
        ),
        (
            lambda: Inkling(TOOLS, None),
            '<|message_model|>f<|content_invoke_tool_json|>{"name": "f", "args": {}}<|end_message|>',
            'f<|content_invoke_tool_json|>{"name": "f", "args": {}}',
        ),
        (
            lambda: Muse(TOOLS),
            ' to=f<|message|><atem:function_calls><atem:invoke name="f"></atem:invoke></atem:function_calls><|eom|>',
            ' to=f<|message|><atem:function_calls><atem:invoke name="f"></atem:invoke></atem:function_calls>',
        ),
    ],
)
def test_messages_to_another_function_are_text(splitter, text, shown):
    got = told(run(splitter(), [text]))
    assert told(run(splitter(), list(text))) == got
    assert (got["calls"], got["answer"]) == ([], shown)
    assert (
        told(run(splitter(), [text.replace("=functions.f", "=functions.g").replace('f"', 'g"')]))["calls"]
        or "python" in text
    )


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
