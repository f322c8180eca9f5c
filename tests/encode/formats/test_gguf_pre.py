"""The table of GGUF's pre-tokenizers: complete, like the originals, and split as the reference libraries split."""

from __future__ import annotations

import json

import msgspec
import pytest
import tiktoken
import tokenizers
from case_tables import cases
from full_run import share

from tokenweir.encode.components.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.formats import read_bytes
from tokenweir.encode.formats.gguf.pre import PRE
from tokenweir.encode.formats.known_rank_files import PATTERNS
from tokenweir.encode.pattern import compile_pattern
from tokenweir.encode.spec import NFC, PreTokenizerSequence, RankBPE, Split
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial

CASES = cases(__file__)

# The names of llama.cpp's src/llama-vocab.cpp (2026-11); `default` and `whitespace` stand for no original.
NAMES = CASES["names"]
BEYOND = {"afmoe"}
"""Refused: the first has no documented original, the others a pattern that no automaton of ours runs."""


def parts(pre_tokenizer):
    """The parts of a pre-tokenizer, patterns in one spelling."""
    sequence = pre_tokenizer.pretokenizers if isinstance(pre_tokenizer, PreTokenizerSequence) else (pre_tokenizer,)
    return [
        (part.pattern.Regex.replace("\r", r"\r").replace("\n", r"\n"), part.behavior)
        if isinstance(part, Split)
        else (part.use_regex, part.add_prefix_space)
        for part in sequence
    ]


def test_every_name_of_llama_cpp():
    assert sorted(PRE) == NAMES
    assert {name for name, pre in PRE.items() if pre.stages is None} == {"afmoe"}


@pytest.mark.parametrize(
    ("name", "original"),
    [("gpt-2", "gpt2"), ("llama-bpe", "llama-3.1"), ("qwen2", "qwen3"), ("deepseek-v3", "deepseek-litellm")],
)
def test_components_are_the_originals(data, name, original):
    spec = read_bytes(data(f"tokenizers/{original}/tokenizer.json").read_bytes(), "huggingface")
    pre = PRE[name]
    assert parts(pre.pre_tokenizer) == parts(spec.pre_tokenizer)
    assert pre.nfc == isinstance(spec.normalizer, NFC)
    assert pre.ignore_merges == spec.model.ignore_merges
    assert not pre.doubt


def test_tekken_is_mistrals(data):
    config = json.loads(data("tokenizers/mistral-common/tekken_240911.json").read_text())["config"]
    assert config["pattern"] == PRE["tekken"].stages[0].pattern.Regex


def distinct():
    """One name for each pre-tokenizer that has patterns."""
    return list({pre.stages: name for name, pre in reversed(PRE.items()) if pre.stages}.values())


def test_every_pattern_compiles_or_is_refused():
    refused = set()
    for name, pre in PRE.items():
        for stage in pre.stages or ():
            if isinstance(stage, Split):
                try:
                    compile_pattern(stage.pattern.Regex, stage.dialect)
                except UnsupportedTokenizerError:
                    refused.add(name)
    assert refused == BEYOND - {"afmoe"}


@pytest.mark.parametrize("name", [name for name in distinct() if name not in BEYOND and not PRE[name].ranks])
def test_pieces_are_those_of_the_library(tokenizer_json, name):
    encoded = msgspec.to_builtins(PRE[name].pre_tokenizer)
    for part in encoded.get("pretokenizers", [encoded]):
        part.pop("dialect", None)
        part.pop("unmatched", None)
    reference = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(pre_tokenizer=encoded))).pre_tokenizer
    ours = pre_tokenizer_core(PRE[name].pre_tokenizer, takes_bytes=False).core
    for kind in adversarial.strings(share(1200), seed=name).values():
        for text in kind:
            theirs = reference.pre_tokenize_str(text)
            assert [piece.decode() for piece in ours.pieces(text)] == [piece for piece, _ in theirs], repr(text)
            assert [tuple(span) for span in ours.split(text).tolist()] == [span for _, span in theirs], repr(text)


def test_kimi_is_a_tiktoken_tokenizer(gguf, spell):
    """Its merges, which converters make up, have no say."""
    default = Tokenizer.default()
    ranks = {default.token_bytes(i): i for i in range(default.vocab_size - len(default.added_tokens))}
    n = len(ranks)
    values = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "kimi-k2",
        "tokenizer.ggml.tokens": [*map(spell, ranks), "[BOS]", "[EOS]"],
        "tokenizer.ggml.token_type": [1] * n + [3, 3],
        "tokenizer.ggml.bos_token_id": n,
        "tokenizer.ggml.eos_token_id": n + 1,
    }
    tok = Tokenizer.from_bytes(gguf(values), "gguf")
    assert isinstance(tok.spec.model, RankBPE)
    assert (tok.bos_id, tok.eos_ids) == (n, {n + 1})
    special = {"[BOS]": n, "[EOS]": n + 1}
    reference = tiktoken.Encoding("kimi", pat_str=PATTERNS["kimi"], mergeable_ranks=ranks, special_tokens=special)
    for kind in adversarial.strings(share(1800), seed="kimi", special_tokens=list(special)).values():
        for text in kind:
            assert tok.encode(text) == reference.encode(text, allowed_special="all"), repr(text)


def test_o200k_where_llama_cpp_has_an_imitation():
    assert [part.pattern.Regex for part in PRE["gpt-4o"].stages[:-1]] == [PATTERNS["o200k"]]
    assert PRE["gpt-4o"].stages == PRE["llama4"].stages
