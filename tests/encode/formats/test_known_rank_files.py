"""Rank files whose pattern and special tokens are known, and what tells them."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import unicodedata
from functools import partial
from unittest import mock

import pytest
import tiktoken
from case_tables import cases
from tiktoken_ext import openai_public

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import known_rank_files
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

WORDS = ["ab", "abc", " a", "日", "日本", "12", "123", "한", "國a", "é", "≯"]
RANKS = {bytes([byte]): byte for byte in range(256)} | {word.encode(): 256 + i for i, word in enumerate(WORDS)}
TEXTS = [
    "",
    "abc ab 1234 12  日本語abc, I'M it's\r\n\n  x",
    "日本abc國abc ABCabc한국어 é e\u0301 \u212b",
    "\u1100\u1161 <|im_end|>\u0338 <|im_start|>a<|endoftext|>",
]
KIMI = {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}
QWEN = {"tokenizer_class": "QWenTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]}}


@pytest.fixture
def folder(tmp_path):
    """Writes a model folder: the rank file, and files by name as JSON or, for code, something that must not run."""

    def write(rank_file, **files):
        lines = (b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in RANKS.items())
        (tmp_path / rank_file).write_bytes(b"".join(lines))
        for name, content in files.items():
            if content is None:
                (tmp_path / f"{name}.py").write_text("raise SystemExit('executed')")
            else:
                (tmp_path / f"{name}.json").write_text(json.dumps(content))
        return tmp_path

    return write


def reference(tok):
    """tiktoken with the pattern and the special tokens of ours."""
    pattern = tok.spec.pre_tokenizer.pattern.Regex
    special = {token.content: token.id for token in tok.added_tokens}
    return tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=RANKS, special_tokens=special)


def check(tok, texts, normalize=str):
    """Compare the ids of texts with tiktoken's."""
    theirs = reference(tok)
    for text in texts:
        assert tok.encode(text) == theirs.encode(normalize(text), allowed_special="all")
        assert tok.encode(text, parse_special=False) == theirs.encode_ordinary(normalize(text))


@pytest.mark.parametrize(
    ("rank_file", "files", "by"),
    [
        ("qwen.tiktoken", {}, "the name qwen.tiktoken"),
        ("x.tiktoken", {"tokenizer_config": QWEN}, "tokenizer_config.json's auto_map, tokenization_qwen.QWenTokenizer"),
        (
            "tiktoken.model",
            {"tokenizer_config": {"auto_map": {"AutoTokenizer": "Qwen/Qwen-7B--tokenization_qwen.QWenTokenizer"}}},
            "tokenizer_config.json's auto_map, tokenization_qwen.QWenTokenizer",
        ),
        (
            "tokenizer.model",
            {"tokenizer_config": {"tokenizer_class": "QWenTokenizer"}},
            "tokenizer_config.json's tokenizer_class, QWenTokenizer",
        ),
        ("tiktoken.model", {"tokenization_qwen": None}, "the file tokenization_qwen.py"),
    ],
)
def test_qwens_first_models(folder, rank_file, files, by):
    tok = Tokenizer.from_file(folder(rank_file, **files))
    assert tok.spec.notes == (f"the pattern, form C and the special tokens are those of Qwen's first models, by {by}",)
    special = tok.special_tokens
    assert len(special) == 208
    assert (special["<|endoftext|>"], special["<|im_start|>"], special["<|im_end|>"]) == (151643, 151644, 151645)
    assert (special["<|extra_0|>"], special["<|extra_204|>"]) == (151646, 151850)
    check(tok, TEXTS, partial(unicodedata.normalize, "NFC"))
    assert tok.encode("1234") == [49, 50, 51, 52], "digits stand alone"


def test_qwens_models_that_see_have_more_special_tokens(folder):
    path = folder("qwen.tiktoken", tokenizer_config=QWEN, config={"visual": {"width": 1664}})
    with pytest.raises(
        UnsupportedTokenizerError, match=r"'qwen.tiktoken' says nothing of its pattern.*: give pattern="
    ):
        Tokenizer.from_file(path)


@pytest.mark.parametrize(
    "files", [{"tokenizer_config": KIMI}, {"tokenization_kimi": None}, {"config": {"model_type": "kimi_k2"}}]
)
def test_kimi(folder, files):
    config = {
        "added_tokens_decoder": {
            "267": {"content": "[BOS]", "special": True},
            "268": {"content": "<|im_end|>", "special": True},
            "270": {"content": "<|tool_call_begin|>", "normalized": True},
            "271": {"content": "|>b", "normalized": False, "lstrip": True},  # tiktoken has no such flags
        }
    }
    files = files | {"tokenizer_config": files.get("tokenizer_config", {}) | config}
    tok = Tokenizer.from_file(folder("tiktoken.model", **files))
    assert tok.spec.notes[0].startswith("the pattern and the special tokens are those of Kimi, by ")
    added = {token.content: token.id for token in tok.added_tokens}
    assert len(added) == 256 and sorted(added.values()) == list(range(267, 267 + 256))
    assert (added["[BOS]"], added["<|reserved_token_269|>"], added["<|reserved_token_522|>"]) == (267, 269, 522)
    assert set(tok.special_tokens) == {"[BOS]", "<|im_end|>"}
    check(tok, [*TEXTS, "[BOS]日<|reserved_token_269|> <|tool_call_begin|>x", "<|tool_call_begin|>b  |>b"])
    assert tok.encode("國a") != [tok.token_to_id("國a")], "Chinese characters stand apart from letters"


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"tokenization_new": None},
        {"tokenizer_config": {"tokenizer_class": "TikTokenTokenizer"}},
        {"tokenizer_config": {"auto_map": {"AutoTokenizer": ["tokenization_kimia.TikTokenTokenizer", None]}}},
        {"tokenizer_config": {"auto_map": ["x"], "tokenizer_class": 3}},
    ],
)
def test_what_nothing_is_known_of(folder, files):
    path = folder("tiktoken.model", **files)
    message = r"a rank file 'tiktoken.model' says nothing of its pattern and special tokens: give pattern= and"
    with pytest.raises(UnsupportedTokenizerError, match=message):
        Tokenizer.from_file(path)
    tok = Tokenizer.from_file(path, pattern=r"\w+|\W", special_tokens={"<s>": 300})
    assert (tok.spec.notes, tok.encode("ab<s>")) == ((), [256, 300])


def test_ids_of_a_config_that_are_no_ids(folder):
    files = {"tokenizer_config": {"added_tokens_decoder": {"9" * 5000: {"content": "x"}}}}
    with pytest.raises(TokenizerFileError, match=r"tokenizer_config.json: added_tokens_decoder: Exceeds the limit"):
        Tokenizer.from_file(folder("qwen.tiktoken", **files))


def test_what_is_given_comes_before_what_is_known(folder):
    tok = Tokenizer.from_file(folder("qwen.tiktoken"), pattern=r"\w+|\W")
    assert (tok.spec.normalizer, tok.spec.notes, len(tok.special_tokens)) == (None, (), 208)


@pytest.mark.parametrize(
    ("config", "languages", "known"),
    [
        ({}, 99, {"translate": 101, "notimestamps": 106, "0.00": 107, "30.00": 1607, "su": 100}),
        ({"vocab_size": 51866}, 100, {"translate": 102, "notimestamps": 107, "0.00": 108, "30.00": 1608, "yue": 101}),
    ],
)
def test_whisper(folder, config, languages, known):
    tok = Tokenizer.from_file(folder("multilingual.tiktoken", config=config))
    assert (
        f"those of OpenAI's Whisper with {languages} languages, by the name multilingual.tiktoken" in tok.spec.notes[0]
    )
    known |= {"endoftext": 0, "startoftranscript": 1, "en": 2, "de": 4}
    first = len(RANKS)
    assert {name: tok.special_tokens[f"<|{name}|>"] - first for name in known} == known
    assert sorted(tok.special_tokens.values()) == list(range(first, first + 1509 + languages))
    check(tok, [*TEXTS, "<|startoftranscript|><|de|><|transcribe|><|0.00|> Abc<|1.02|>"])


LLAMA4 = CASES["llama4"]


@pytest.mark.parametrize("by", ["model_type", "content"])
def test_llama_4(folder, monkeypatch, by):
    path = folder("tokenizer.model", config={"model_type": "llama4"} if by == "model_type" else {})
    if by == "content":  # of the real file only the hash is known
        llama4 = known_rank_files._BY_MODEL_TYPE["llama4"]
        digest = hashlib.sha256((path / "tokenizer.model").read_bytes()).hexdigest()
        monkeypatch.setattr(known_rank_files, "_BY_SHA256", {digest: llama4})
    tok = Tokenizer.from_file(path)
    ending = "config.json's model_type, llama4" if by == "model_type" else "its content"
    assert tok.spec.notes == (f"the pattern and the special tokens are those of Llama 4, by {ending}",)
    assert {token: tok.special_tokens[token] - len(RANKS) for token in LLAMA4} == LLAMA4
    assert len(tok.special_tokens) == len(set(tok.special_tokens.values())) == 2048
    assert tok.eos_ids == {tok.special_tokens[token] for token in ("<|end_of_text|>", "<|eom|>", "<|eot|>")}
    check(tok, [*TEXTS, "<|begin_of_text|><|header_start|>user<|header_end|>\n\nAbc<|eot|>"])


@pytest.mark.parametrize("name", ["p50k_edit", "o200k_harmony", "cl100k_base", "o200k_base", "r50k_base", "p50k_base"])
def test_openais_files_have_tiktokens_patterns_and_special_tokens(folder, name):
    tok = Tokenizer.from_file(folder(f"{name}.tiktoken"))
    with mock.patch.object(openai_public, "load_tiktoken_bpe", return_value=RANKS):
        theirs = getattr(openai_public, name)()
    assert tok.spec.pre_tokenizer.pattern.Regex == theirs["pat_str"]
    assert tok.special_tokens == theirs["special_tokens"]
    enc = tiktoken.Encoding(**{key: theirs[key] for key in ("name", "pat_str", "mergeable_ranks", "special_tokens")})
    for token_id in enc._special_tokens.values():
        assert tok.decode([token_id], skip_special_tokens=False) == enc.decode([token_id])
        assert tok.id_to_token(token_id) == enc.decode([token_id])
    text = "ab<|endofprompt|> <|reserved_200018|><|return|>b"
    assert tok.encode(text) == enc.encode(text, allowed_special="all")


def test_tiktokens_own_dictionary_with_two_names_for_an_id(folder):
    with mock.patch.object(openai_public, "load_tiktoken_bpe", return_value=RANKS):
        theirs = openai_public.o200k_harmony()
    path = folder("x.tiktoken")
    given = {"pattern": theirs["pat_str"], "special_tokens": theirs["special_tokens"]}
    tok = Tokenizer.from_file(path, **given)
    assert tok.encode("<|endofprompt|><|reserved_200018|>") == [200018, 200018]
    assert tok.decode([200018], skip_special_tokens=False) == "<|endofprompt|>"
    assert tok.decode([200018]) == ""
    assert tok.token_bytes(200018) == b"<|endofprompt|>"
    assert pickle.loads(pickle.dumps(tok)).special_tokens == tok.special_tokens == theirs["special_tokens"]


def test_openais_files_are_known_by_their_names(folder):
    tok = Tokenizer.from_file(folder("cl100k_base.tiktoken"))
    assert tok.spec.notes == (
        "the pattern and the special tokens are those of OpenAI's cl100k_base, by the name cl100k_base.tiktoken",
    )


def test_a_config_of_the_wrong_form_is_refused_where_it_is_read(folder):
    path = folder("tiktoken.model", tokenizer_config=KIMI | {"added_tokens_decoder": {"x": {"content": "a"}}})
    with pytest.raises(TokenizerFileError, match="added_tokens_decoder: invalid literal"):
        Tokenizer.from_file(path)
