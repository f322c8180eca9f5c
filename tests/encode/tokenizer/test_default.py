"""The embedded default vocabulary: what is in it, and that HuggingFace's library reads it the same way."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
import tokenizers
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

ROOT = Path(__file__).resolve().parents[3]

TEXTS = CASES["texts"]


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


@pytest.fixture(scope="module")
def reference():
    return tokenizers.Tokenizer.from_str(
        resources.files("tokenweir.encode").joinpath("data/tokenizer.json").read_text("utf-8")
    )


def test_every_byte_is_a_token(tok):
    tokens = {tok.token_bytes(token_id) for token_id in range(tok.vocab_size)}
    assert {bytes([byte]) for byte in range(256)} <= tokens
    assert len(tokens) == tok.vocab_size == 8192


def test_control_tokens_and_tags(tok):
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|reserved_0|>", "<|reserved_1|>", "<|reserved_2|>"]
    tags = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
    assert list(tok.special_tokens) == special
    assert [token.content for token in tok.added_tokens if not token.special] == tags
    assert [token.id for token in tok.added_tokens] == list(range(8180, 8192))
    assert tok.decode(tok.encode("<|im_start|>a<think>b</think>c<|im_end|>")) == "a<think>b</think>c"


def test_ends_come_from_the_generation_config(tok):
    config = json.loads(resources.files("tokenweir.encode").joinpath("data/generation_config.json").read_text())
    assert tok.eos_ids == set(config["eos_token_id"])
    assert tok.eos_ids == {tok.special_tokens["<|im_end|>"], tok.special_tokens["<|endoftext|>"]}
    assert not tok.eos_inferred
    assert tok.pad_id == tok.special_tokens["<|endoftext|>"]
    assert tok.bos_id is None
    assert tok.encode("a", add_special_tokens=True) == tok.encode("a", add_special_tokens=False)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_round_trip_in_every_script(tok, reference, text):
    ids = tok.encode(text)
    assert tok.decode(ids) == text
    assert ids == reference.encode(text).ids


@given(st.text())
def test_round_trip_of_anything(tok, text):
    assert tok.decode(tok.encode(text, parse_special=False)) == text


@pytest.mark.parametrize("emoji", ["🌊", "🦦", "📼", "⏱", "🇳🇱"])
def test_emoji_are_split_inside_a_character(tok, emoji):
    pieces = [tok.token_bytes(token_id) for token_id in tok.encode(emoji)]
    assert len(pieces) >= 2
    with pytest.raises(UnicodeDecodeError):
        pieces[0].decode()


def test_words_are_long_and_cjk_is_short(tok):
    english, chinese = TEXTS["English"], TEXTS["Chinese"]
    assert len(english) / tok.count(english) > 3.5  # characters a token
    assert len(chinese) / tok.count(chinese) < 1.5


def test_no_token_is_a_ruler(tok):
    added = {token.id for token in tok.added_tokens}
    assert max(len(tok.token_bytes(token_id)) for token_id in range(tok.vocab_size) if token_id not in added) <= 16


def test_the_package_carries_the_files_and_stays_small():
    files = {
        file.name: len(file.read_bytes()) for file in resources.files("tokenweir.encode").joinpath("data").iterdir()
    }
    assert set(files) == {
        "NOTICE",
        "chat_template.jinja",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert sum(files.values()) < 400_000


def test_the_script_trains_what_is_committed(tmp_path, data):
    corpora = data("corpora/war-and-peace.txt").parent
    versions = platform.python_version(), tokenizers.__version__
    if versions != ("3.11.7", "0.23.3"):  # the standard library is part of the text
        pytest.skip(f"the vocabulary was trained with Python 3.11.7 and tokenizers 0.23.3, this is {versions}")
    subprocess.run([sys.executable, ROOT / "scripts" / "train_default", corpora, "--out", tmp_path], check=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        assert (tmp_path / name).read_bytes() == (ROOT / "encode" / "data" / name).read_bytes()
