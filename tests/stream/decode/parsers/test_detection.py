from __future__ import annotations

import numpy as np
import pytest
from case_tables import cases
from drawn_answers import text_of
from real_tokenizers import real_tokenizer
from splitting import run, told

from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.decode.parsers.combined import ThinkingAndTools
from tokenweir.stream.decode.parsers.detection import (
    Styles,
    find_splitter,
    look_up_styles,
    read_prompt,
    shown_texts,
    shown_tokens,
    vocabulary_tools,
)
from tokenweir.stream.decode.parsers.harmony import MARKS, Harmony
from tokenweir.stream.decode.parsers.last_turn import PART
from tokenweir.stream.decode.parsers.reasoning import ReasoningParser
from tokenweir.stream.decode.parsers.tools import ToolParser
from tokenweir.stream.events.deltas import Channel, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.templates.styles.reasoning import STYLES
from tokenweir.templates.styles.tools import TOOL_STYLES

CASES = cases(__file__)

THINK = STYLES["think"]


@pytest.mark.parametrize("style", [s for s in STYLES.values() if s.tokens and s.name != "plamo3"], ids=lambda s: s.name)
def test_a_vocabulary_that_has_the_tags_shows_the_style(make_tok, style):
    assert read_prompt(make_tok(*(AddedToken(token) for token in style.tokens))).style is style


def test_a_vocabulary_without_tags_or_with_one_of_two_shows_none(make_tok):
    assert read_prompt(make_tok()).style is None
    assert read_prompt(make_tok(AddedToken("<think>"))).style is None


def test_a_prompt_that_opens_the_thinking_shows_the_style(tok, think_tok):
    assert read_prompt(tok, tok.encode("<skip>Assistant: <seed:think>\n")).style is STYLES["seed-oss"]
    assert read_prompt(think_tok, think_tok.encode("<skip>[THINK]")).style is STYLES["mistral"]


@pytest.mark.parametrize("name", ["tok", "think_tok"])
@pytest.mark.parametrize(("prompt", "opened"), CASES["a_prompt_opens_the_thinking_in_its_last_turn"])
def test_a_prompt_opens_the_thinking_in_its_last_turn(request, name, prompt, opened):
    tok = request.getfixturevalue(name)
    assert read_prompt(tok, tok.encode(prompt), THINK) == (THINK, opened)


def test_without_control_tokens_only_an_opener_at_the_end_counts(tok):
    users = tok.encode("User: hi\n<think>\nfoo\nAssistant:", parse_special=False)
    templates = tok.encode("User: hi\nAssistant: <think>\n", parse_special=False)
    assert not read_prompt(tok, users, THINK).inside
    assert read_prompt(tok, templates, THINK).inside


@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("before", ["<skip>", "<think>a</think>b<skip>"])
@pytest.mark.parametrize(("middle", "opened"), [("", True), ("</think>", False), ("</think>\n<think>", True)])
def test_a_thought_that_goes_on_for_long_is_still_open(tok, kind, before, middle, opened):
    for length in (2048, PART - 4, PART + 1, 5 * PART):  # tags stand on both sides of where parts end
        prompt = before + "<think>" + "so it is\n" * (length // 9) + "x" * (length % 9) + middle + "so " * PART
        reading = read_prompt(tok, kind(tok.encode(prompt)), THINK)
        assert reading == (THINK, opened)
        deltas = ChatDecoder(tok, prompt_ids=kind(tok.encode(prompt)), reasoning="think").feed(tok.encode("a</think>b"))
        assert [type(delta) for delta in deltas][:1] == [ReasoningDelta if opened else TextDelta]


def test_a_mention_of_tags_in_a_long_prompt_without_control_tokens_opens_nothing(tok):
    text = "\n<think>\n" + "so " * 3 * PART
    assert not read_prompt(tok, tok.encode(text), THINK).inside
    assert read_prompt(tok, tok.encode(text + "<think>"), THINK).inside


def test_the_first_token_ends_no_turn(data):
    tok = real_tokenizer(data("tokenizers/llama-2/tokenizer.json"))
    user = tok.encode("[INST] What does this mean?\n<think>\nHm. [/INST]")
    assert tok.id_to_token(user[0]) == "<s>"
    assert read_prompt(tok, user).inside is False
    assert read_prompt(tok, user + tok.encode("<think>\n", add_special_tokens=False)).inside is True


def test_harmony_goes_on_in_a_long_message(make_tok):
    tok = make_tok(*(AddedToken(mark, special=True) for mark in MARKS))
    prompt = tok.encode("<|start|>assistant<|channel|>analysis<|message|>" + "so " * 3 * PART)
    splitter, _ = find_splitter(tok, prompt)
    assert splitter.channel is Channel.REASONING


def test_tags_that_are_control_tokens_end_no_turn(mistral_tok):
    style = STYLES["mistral"]
    assert read_prompt(mistral_tok, mistral_tok.encode("<skip>[THINK]so far"), style).inside
    assert not read_prompt(mistral_tok, mistral_tok.encode("<skip>[THINK]so far[/THINK]"), style).inside


def test_turns_end_at_role_tokens_that_are_not_special(make_tok):
    tok = make_tok(AddedToken("<think>"), AddedToken("</think>"), AddedToken("<|Assistant|>"), AddedToken("word"))
    user = "<skip>Look:\n<think>\nfoo"
    opener = len("<skip>Look:\n")
    assert read_prompt(tok, tok.encode(user + "<|Assistant|>", guarded=[opener])) == (THINK, False)
    assert read_prompt(tok, tok.encode(user + "<|Assistant|><think>\n", guarded=[opener])) == (THINK, True)
    assert read_prompt(tok, tok.encode("<skip>\n<think>\nso word", guarded=[])) == (THINK, True)


def test_only_special_tokens_need_to_be_shown(think_tok, mistral_tok):
    assert shown_tokens(think_tok, THINK) == {}
    opener, closer = (mistral_tok.token_to_id(tag) for tag in ("[THINK]", "[/THINK]"))
    assert shown_tokens(mistral_tok, STYLES["mistral"]) == {opener: "[THINK]", closer: "[/THINK]"}


def test_real_vocabularies_show_their_style(data):
    qwen3 = real_tokenizer(data("tokenizers/qwen3/tokenizer.json"))
    llama = real_tokenizer(data("tokenizers/llama-3.1/tokenizer.json"))
    assert read_prompt(qwen3) == (THINK, False)
    assert read_prompt(qwen3, qwen3.encode("<|im_start|>assistant\n<think>\n")) == (THINK, True)
    assert read_prompt(llama) == (None, False)
    deepseek = real_tokenizer(data("tokenizers/deepseek-litellm/tokenizer.json"))
    user = "<｜begin▁of▁sentence｜><｜User｜>Look:\n<think>\nfoo<｜Assistant｜>"  # its role tokens are not special
    assert read_prompt(deepseek, deepseek.encode(user, add_special_tokens=False, guarded=[user.find("<think>")])) == (
        THINK,
        False,
    )


def test_hunyuan_tags_end_as_the_vocabulary_has_them(make_tok):
    tok = make_tok(AddedToken("<think:preview>", special=True), AddedToken("</think:preview>", special=True))
    style, inside = read_prompt(tok, tok.encode("<skip>x<think:preview>"))
    assert inside
    assert (style.name, style.openers, style.closers) == ("hunyuan", ("<think:preview>",), ("</think:preview>",))
    assert read_prompt(tok, tok.encode("<skip>x<think:preview>"), STYLES["hunyuan"]) == (style, True)


@pytest.mark.parametrize("chosen", ["auto", TOOL_STYLES["hunyuan-v3"]])
def test_hunyuan_calls_have_tags_as_the_vocabulary_has_them(make_tok, chosen):
    tok = make_tok(*(AddedToken(f"<{name}:6a>", special=True) for name in ("tool_calls", "/tool_calls")))
    splitter, styles = find_splitter(tok, tool_style=chosen)
    text = "So.<tool_calls:6a><tool_call:6a>now</tool_call:6a></tool_calls:6a>"
    assert styles.names == (None, "hunyuan-v3")
    assert told(run(splitter, [text]))["calls"] == [("now", "{}", "complete")]
    assert look_up_styles(tok, styles.names, None, chosen).calls == styles.calls


def test_styles_that_share_their_tags_are_told_apart_by_the_vocabulary(make_tok):
    both = (AddedToken("<think>"), AddedToken("</think>"))
    prompt = "<skip>x\n<think>\n"
    plain, ernie = make_tok(*both), make_tok(*both, AddedToken("<response>"), AddedToken("</response>"))
    assert read_prompt(plain, plain.encode(prompt)).style is THINK
    assert read_prompt(ernie, ernie.encode(prompt)).style is STYLES["think-response"]


# -- tool calls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", [s for s in TOOL_STYLES.values() if s.tokens], ids=lambda s: s.name)
def test_a_vocabulary_that_has_the_tokens_shows_the_style_of_calls(make_tok, style):
    tok = make_tok(*(AddedToken(token) for token in style.tokens))
    assert vocabulary_tools(tok) is style
    if style.unlike:
        assert (
            vocabulary_tools(make_tok(*(AddedToken(token) for token in (*style.tokens, style.unlike[0])))) is not style
        )


def test_the_splitter_is_what_there_is_to_split(make_tok):
    hermes = TOOL_STYLES["hermes"]
    none = make_tok()
    assert find_splitter(none) == (None, Styles(None, None))
    assert find_splitter(none, tool_style="auto") == (None, Styles(None, None))
    assert isinstance(find_splitter(none, tool_style=hermes)[0], ToolParser)
    assert isinstance(find_splitter(none, reasoning=THINK)[0], ReasoningParser)
    assert isinstance(find_splitter(none, reasoning=THINK, tool_style=hermes)[0], ThinkingAndTools)
    assert isinstance(find_splitter(none, reasoning=None, tool_style=TOOL_STYLES["harmony"])[0], Harmony)


def test_special_tokens_of_calls_are_shown_and_no_others(make_tok):
    tok = make_tok(AddedToken("[TOOL_CALLS]", special=True), AddedToken("[ARGS]", special=True))
    assert shown_tokens(tok, TOOL_STYLES["mistral"]) == {
        tok.token_to_id("[TOOL_CALLS]"): "[TOOL_CALLS]",
        tok.token_to_id("[ARGS]"): "[ARGS]",
    }
    assert shown_texts(tok, find_splitter(tok, tool_style=None)[1]) == {}


def texts(deltas):
    answer = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thinking = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    calls = [delta for delta in deltas if isinstance(delta, ToolCallDelta)]
    return answer, thinking, "".join(c.name for c in calls), "".join(c.arguments for c in calls), deltas[-1].reason


@pytest.mark.parametrize(
    ("file", "text", "as_text"),
    CASES["calls_by_id_and_by_text_are_the_same_in_real_vocabularies"],
    ids=["qwen3", "llama", "mistral", "deepseek"],
)
def test_calls_by_id_and_by_text_are_the_same_in_real_vocabularies(data, file, text, as_text):
    tok = real_tokenizer(data(f"tokenizers/{file}"))
    by_id = tok.encode(text, add_special_tokens=False)
    assert {tok.token_to_id(token) for token in as_text} <= set(by_id)
    by_text = tok.encode(text, add_special_tokens=False, parse_special=False)
    assert not {tok.token_to_id(token) for token in as_text} & set(by_text)
    prompt = tok.encode("Hi", add_special_tokens=False)
    for ids in (by_id, by_text):
        decoder = ChatDecoder(tok, prompt_ids=prompt, tool_style="auto")
        deltas = [delta for token_id in ids for delta in decoder.feed([token_id])] + decoder.finish()
        answer, _, name, arguments, reason = texts(deltas)
        assert (answer.strip(), name, arguments, reason) == ("", "f", '{"é": 1}', FinishReason.TOOL_CALLS)
        assert [i for delta in deltas for i in delta.token_ids] == ids


# -- harmony -----------------------------------------------------------------------------------------------------------

GPT_OSS = CASES["gpt_oss"]


@pytest.fixture(scope="module")
def gpt_oss(data):
    """The vocabulary of gpt-oss: that of GPT-4o with harmony's tokens."""
    return Tokenizer.from_file(data("tokenizers/openai/o200k_base.tiktoken"), special_tokens=GPT_OSS)


def test_harmony_is_found_and_only_return_and_call_end_the_answer(gpt_oss):
    assert read_prompt(gpt_oss).style is STYLES["harmony"]
    assert vocabulary_tools(gpt_oss) is TOOL_STYLES["harmony"]
    assert gpt_oss.eos_ids == {GPT_OSS["<|return|>"], GPT_OSS["<|call|>"]}


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("special", [True, False])
def test_harmony_by_id_and_by_text(gpt_oss, size, skip, special):
    prompt = gpt_oss.encode("<|start|>user<|message|>Weather?<|end|><|start|>assistant")
    text = (
        "<|channel|>analysis<|message|>Let me see é.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Rome"}'
    )
    ids = [*gpt_oss.encode(text, parse_special=special), GPT_OSS["<|call|>"]]
    decoder = ChatDecoder(gpt_oss, prompt_ids=prompt, skip_special_tokens=skip)
    deltas = [delta for at in range(0, len(ids), size) for delta in decoder.feed(ids[at : at + size])]
    assert decoder.finished
    assert texts(deltas) == ("I look.", "Let me see é.", "get_weather", '{"city": "Rome"}', FinishReason.TOOL_CALLS)
    assert [i for delta in deltas for i in delta.token_ids] == ids


def test_harmony_goes_on_where_the_prompt_ends(gpt_oss):
    for before, expected in CASES["harmony_goes_on_where_the_prompt_ends"]:
        decoder = ChatDecoder(gpt_oss, prompt_ids=gpt_oss.encode(before))
        deltas = decoder.feed(gpt_oss.encode("is.")) + decoder.feed([GPT_OSS["<|return|>"]])
        assert texts(deltas)[:2] == tuple(expected)
        assert deltas[-1].reason is FinishReason.STOP


def test_headers_of_harmony_are_no_text_even_where_thinking_stays_in_the_answer(make_tok):
    tok = make_tok(*(AddedToken(token, special=True) for token in STYLES["harmony"].tokens), AddedToken("<|end|>"))
    splitter, _ = find_splitter(tok, reasoning=None)
    pieces = splitter.feed("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi") + (
        splitter.finish()
    )
    assert [(piece.channel, piece.text) for piece in pieces if piece.text] == [
        (Channel.ANSWER, "hm"),
        (Channel.ANSWER, "Hi"),
    ]


KIMI_K3 = ("<|open|>", "<|close|>", "<|sep|>")
FRAMED = (
    "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Hi, message.<|close|>response<|sep|>"
    "<|close|>message<|sep|>"
)


def test_tags_round_the_answer_are_no_text_even_where_thinking_stays_in_it(make_tok):
    tok = make_tok(*(AddedToken(token, special=True) for token in KIMI_K3))
    for reasoning, answer in ((None, "Hm.Hi, message."), ("auto", "Hi, message."), ("strip", "Hi, message.")):
        deltas = ChatDecoder(tok, reasoning=reasoning).feed(tok.encode(FRAMED))
        assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == answer


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (KIMI_K3, FRAMED),
        (MARKS, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>x"),
    ],
)
def test_a_frame_is_cut_out_after_a_state_is_restored(make_tok, tokens, text):
    tok = make_tok(*(AddedToken(token, special=True) for token in tokens))
    ids = tok.encode(text)
    for place in range(len(ids)):
        decoder = ChatDecoder(tok, reasoning=None)
        decoder.feed(ids[:place])
        restored = ChatDecoder.from_state(tok, decoder.state(), reasoning=None)
        assert restored.feed(ids[place:]) == decoder.feed(ids[place:])


def test_an_opener_that_is_a_control_token_counts_within_a_line(make_tok, mistral_tok, tok):
    for size in (1, 99):
        for text, answer in (("content[THINK]thinking[/THINK]more", "contentmore"), ("a [/THINK] b", "a [/THINK] b")):
            decoder, ids = ChatDecoder(mistral_tok, reasoning="mistral"), mistral_tok.encode(text)
            deltas = [
                d for at in range(0, len(ids), size) for d in decoder.feed(ids[at : at + size])
            ] + decoder.finish()
            assert text_of(deltas) == answer
    spelled = "content[THINK]thinking[/THINK]more"
    decoder = ChatDecoder(tok, reasoning="mistral")
    assert text_of(decoder.feed(tok.encode(spelled)) + decoder.finish()) == spelled
    special = make_tok(AddedToken("<think>", special=True), AddedToken("</think>", special=True))
    decoder = ChatDecoder(special)
    assert text_of(decoder.feed(special.encode("Use <think> tags.")) + decoder.finish()) == "Use <think> tags."
