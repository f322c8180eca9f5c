from __future__ import annotations

import pytest

from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.detection import read_prompt, shown_tokens
from tokenweir.templates.reasoning_styles import STYLES

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
@pytest.mark.parametrize(
    ("prompt", "opened"),
    [
        ("", False),
        ("<skip>assistant\n", False),
        ("<skip>assistant\n<think>", True),
        ("<skip>assistant\n<think>\n", True),
        ("<skip>assistant: <think>\n", True),
        ("<skip>assistant\n<think>\n\n</think>\n\n", False),
        ("<skip>assistant\n<think>\nI began to", True),
        ("<skip>assistant\nThe <think> tag", False),
        ("<skip>assistant\n<think>a</think>b\n<think>c", True),
        ("assistant\n<think>never closed<eos>\nuser\nhi<eos>assistant\n", False),
        ("user\nhi <think><skip>assistant\n", False),
        ("<think>", True),
    ],
)
def test_a_prompt_opens_the_thinking_in_its_last_turn(request, name, prompt, opened):
    tok = request.getfixturevalue(name)
    assert read_prompt(tok, tok.encode(prompt), THINK) == (THINK, opened)


def test_without_control_tokens_only_an_opener_at_the_end_counts(tok):
    users = tok.encode("User: hi\n<think>\nfoo\nAssistant:", parse_special=False)
    templates = tok.encode("User: hi\nAssistant: <think>\n", parse_special=False)
    assert not read_prompt(tok, users, THINK).inside
    assert read_prompt(tok, templates, THINK).inside


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
    qwen3 = Tokenizer.from_file(data("tokenizers/qwen3/tokenizer.json"))
    llama = Tokenizer.from_file(data("tokenizers/llama-3.1/tokenizer.json"))
    assert read_prompt(qwen3) == (THINK, False)
    assert read_prompt(qwen3, qwen3.encode("<|im_start|>assistant\n<think>\n")) == (THINK, True)
    assert read_prompt(llama) == (None, False)
    deepseek = Tokenizer.from_file(data("tokenizers/deepseek-litellm/tokenizer.json"))
    user = "<｜begin▁of▁sentence｜><｜User｜>Look:\n<think>\nfoo<｜Assistant｜>"  # its role tokens are not special
    assert read_prompt(deepseek, deepseek.encode(user, add_special_tokens=False, guarded=[user.find("<think>")])) == (
        THINK,
        False,
    )
