"""Tags that count as ids alone: `markup="ids"`."""

from __future__ import annotations

import pytest
from case_tables import cases
from drawn_answers import CUTS, SlowPath, answers, cut, run, text_of
from hypothesis import assume, given
from hypothesis import strategies as st

import tokenweir
from tokenweir import ReasoningDelta, ToolCallDelta
from tokenweir.encode.spec import AddedToken
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.events.merge import merge
from tokenweir.templates.styles.reasoning import STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

TOOLS = [{"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>'
HERMES = {"tool_style": "hermes", "reasoning": "think", "tools": TOOLS, "markup": "ids"}


@pytest.fixture(params=[False, True], ids=["plain", "special"])
def tok(make_tok, request):
    tags = ("<think>", "</think>", "<tool_call>", "</tool_call>")
    return make_tok(*(AddedToken(tag, special=request.param) for tag in tags))


def spelled(text):
    """The ids of a text as ordinary tokens, which are bytes here."""
    return list(text.encode())


def decoded(tok, ids, **options):
    """Decode ids one by one and whole, on both paths and through states, which must be the same; return the deltas."""
    options = HERMES | options
    one_by_one = run(ChatDecoder(tok, **options), [[i] for i in ids])
    assert run(ChatDecoder(tok, **options), [ids]) == run(SlowPath(tok, **options), [ids]) == one_by_one
    decoder, deltas = ChatDecoder(tok, **options), []
    for i in ids:
        deltas += decoder.feed(i)
        decoder = ChatDecoder.from_state(tok, decoder.copy().state(), **options)
    assert merge(deltas + decoder.finish()) == one_by_one
    assert [i for delta in one_by_one for i in delta.token_ids] == ids
    return one_by_one


def parts(deltas):
    calls = [(delta.name, delta.arguments, delta.complete) for delta in deltas if isinstance(delta, ToolCallDelta)]
    return text_of(deltas, ReasoningDelta), text_of(deltas), calls


def test_quoted_tags_are_text_on_every_channel(tok):
    quoted = f"<think>no</think>{CALL}"
    ids = [*tok.encode("<think>"), *spelled(quoted), *tok.encode("</think>"), *spelled(quoted)]
    ids += [*tok.encode("<tool_call>"), *spelled('{"name": "f", "arguments": {"a": "</tool_call>"}}')]
    ids += [*tok.encode("</tool_call>"), *spelled("So.")]
    thinking, answer, calls = parts(decoded(tok, ids))
    assert (thinking, answer) == (quoted, f"{quoted}So.")
    assert calls == [("f", '{"a": "</tool_call>"}', True)]
    assert parts(decoded(tok, ids, markup="text"))[2][0][0] == "f"


def test_tags_as_ids_count_as_they_do_in_text(tok):
    ids = tok.encode(f"<think>hm</think>So.{CALL}\n{CALL}")
    assert decoded(tok, ids) == decoded(tok, ids, markup="text")


def test_markup_that_is_no_call_keeps_its_letters(tok):
    for text in ("<tool_call>words</tool_call>", CALL.replace('"f"', '"g"'), "<tool_call>", "</tool_call>So."):
        deltas = decoded(tok, tok.encode(text))
        assert parts(deltas) == ("", text, [])
        assert not any("\U0010ffc0" in (getattr(delta, "malformed", "") or "") for delta in deltas)


def test_a_tag_inside_arguments_is_part_of_them_as_in_text(tok):
    ids = tok.encode('<tool_call>{"name": "f", "arguments": {"a": "<think>"}}</tool_call>')
    assert parts(decoded(tok, ids))[2] == [("f", '{"a": "<think>"}', True)]


def test_the_characters_that_mark_tags_mark_no_text(tok):
    for code in (0x10FFC0, 0x10FFC1, 0x10FFFD):
        text = f"{chr(code)}tool_call>{CALL[11:]} {chr(code)}think>"
        thinking, answer, calls = parts(decoded(tok, spelled(text)))
        assert (thinking, calls) == ("", [])
        assert answer in (text, text.replace(chr(code), "\U0010ffff"))


def test_the_style_of_a_decoder_has_its_own_tags(tok):
    assert ChatDecoder(tok, **HERMES).reasoning == ChatDecoder(tok, **HERMES | {"markup": "text"}).reasoning


def test_inner_markup_is_text_where_it_is_no_token(tok):
    inner = "\n<function=f>\n<parameter=a>\nx </tool_call> y\n</parameter>\n</function>\n"
    ids = [*tok.encode("<tool_call>"), *spelled(inner), *tok.encode("</tool_call>")]
    options = {"tool_style": "qwen3-coder"}
    assert parts(decoded(tok, ids, **options)) == ("", "", [("f", '{"a": "x </tool_call> y"}', True)])
    assert parts(decoded(tok, spelled(f"<tool_call>{inner}</tool_call>{inner}"), **options))[2] == []


def test_a_prompt_may_have_begun_thinking_or_a_block(tok):
    inside = {"prompt_ids": tok.encode("<think>")}
    ids = [*spelled("hm</think>"), *tok.encode("</think>"), *spelled("So.")]
    decoder = ChatDecoder(tok, **HERMES, **inside)
    assert parts(merge([*decoder.feed(ids), *decoder.finish()])) == ("hm</think>", "So.", [])
    decoder = ChatDecoder(tok, **HERMES | {"reasoning": None}, prompt_ids=tok.encode("<tool_call>"))
    deltas = [*decoder.feed(tok.encode(CALL[11:])), *decoder.finish()]
    assert parts(merge(deltas))[2] == [("f", '{"a": "x"}', True)]


MESSAGES = CASES["messages"]


@pytest.mark.parametrize("name", MESSAGES)
def test_marks_of_messages(make_tok, name):
    marks = dict.fromkeys([*STYLES[name].tokens, *TOOL_STYLES[name].tokens, "<|end|>", "<|end_message|>"])
    tok = make_tok(*(AddedToken(mark) for mark in marks))
    head, answer = MESSAGES[name]
    ids = [*tok.encode(head), *spelled(f"{answer}{head}")]
    options = {"reasoning": name, "tool_style": name, "tools": []}
    thinking, text, calls = parts(decoded(tok, ids, **options))
    assert (thinking, text, calls) == ("Hm.", answer + head, [])


@pytest.mark.parametrize(("options", "message"), CASES["what_cannot_be_found_by_ids_is_refused_by_name"])
def test_what_cannot_be_found_by_ids_is_refused_by_name(tok, options, message):
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        ChatDecoder(tok, **HERMES | options)


def test_calls_without_an_opening_tag_are_text(make_tok):
    tok = make_tok(AddedToken("<|python_tag|>"))
    text = '{"name": "f", "parameters": {}}'
    options = {"tool_style": "llama3", "reasoning": None}
    assert parts(decoded(tok, spelled(text), **options)) == ("", text, [])
    assert parts(decoded(tok, tok.encode("<|python_tag|>" + text), **options))[2] == [("f", "{}", True)]


@given(st.data(), CUTS)
def test_any_answer_is_the_same_however_it_comes(make_tok, data, places):
    tok, ids, options = data.draw(answers(make_tok))
    options |= {"markup": "ids"}
    try:
        decoder = ChatDecoder(tok, **options)
    except ValueError:
        assume(False)
    one_by_one = run(decoder, [[i] for i in ids])
    consumed = len(ids) - decoder.ignored
    assert [i for delta in one_by_one for i in delta.token_ids] == ids[:consumed]
    for kind in (ChatDecoder, SlowPath):
        assert run(kind(tok, **options), cut(ids, places)) == one_by_one


@pytest.mark.parametrize(
    ("name", "calls"), [("qwen3", "hermes"), ("llama-3.1", "llama3"), ("mistral-7b-v0.3", "mistral")]
)
def test_real_vocabularies(data, name, calls):
    tok = tokenweir.Tokenizer.from_file(data(f"tokenizers/{name}"))
    decoder = ChatDecoder(tok, markup="ids", tool_style=calls)
    text = "So: <think> <tool_call> [TOOL_CALLS] <|python_tag|>"
    ids = [i for char in text for i in tok.encode(char, add_special_tokens=False)]
    found = text_of(merge([*decoder.feed(ids), *decoder.finish()]))
    assert found.replace(" ", "") == text.replace(" ", "")  # some decode each token with a space before it
