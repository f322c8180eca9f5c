"""A slice of bench/parity.py: ids, offsets and decoded text equal the reference library's."""

from __future__ import annotations

import base64
from importlib.resources import files

import pytest
import real_parity
import tokenizers
from full_run import FULL, share
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.verify import adversarial, comparison, references

EMBEDDED = files("tokenweir.encode") / "data" / "tokenizer.json"
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    r"\s+(?!\S)|\s"
)
ADDED = [
    AddedToken("<|start|>", special=True),
    AddedToken("<|end|>", special=True, normalized=False),
    AddedToken("<|end|>er", normalized=False),
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, normalized=True),
    AddedToken("  ", normalized=False),
    AddedToken("word", single_word=True, normalized=False),
    AddedToken("wordy", normalized=True),
    AddedToken("e\u0301", normalized=True),
    AddedToken("A\u030a", normalized=False),
]


def check(rows, minimum):
    """No difference, and not because nothing was compared."""
    differences = [f"{row.kind}: {difference}" for row in rows for difference in row.differences]
    assert not differences, "\n".join([f"{len(differences)} differences", *differences[:5]])
    assert sum(row.strings for row in rows) >= minimum


@pytest.mark.parametrize("name", real_parity.TOKENIZERS)
def test_real_tokenizers(data, name):
    data(f"tokenizers/{name}")
    check(real_parity.check(data(""), name, fuzz=share(600), every=400 if FULL else 4800), minimum=900 if FULL else 100)


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "gpt2"])
def test_a_rank_file_with_its_pattern_spelled_out(data, tmp_path, name):
    path = data(f"tokenizers/openai/{name}.tiktoken")
    reference = references.OpenAI.from_file(path)
    unknown = tmp_path / "unknown.tiktoken"
    unknown.symlink_to(path)
    tok = Tokenizer.from_file(
        unknown, pattern=reference.definition["pat_str"], special_tokens=reference.definition["special_tokens"]
    )
    texts = adversarial.strings(share(300), seed=name, special_tokens=reference.special_tokens)
    check(comparison.compare(tok, reference, texts.items(), []), minimum=share(300))


@pytest.fixture(scope="module")
def texts():
    return adversarial.strings(share(1000), seed="default", special_tokens=[token.content for token in ADDED])


def unchanged(tok):
    """As it is embedded."""


def prefix_space(tok):
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tok.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=True)


def prefix_space_outside_offsets(tok):
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_tokens(ADDED)


def trimmed_offsets(tok):
    tok.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    tok.add_tokens(ADDED)


def nfc(tok):
    tok.normalizer = normalizers.NFC()


def added_tokens(tok):
    tok.add_tokens(ADDED)


def nfc_and_added_tokens(tok):
    tok.normalizer = normalizers.Sequence([normalizers.NFC()])
    tok.add_tokens(ADDED)


def whole_pieces_and_template(tok):
    tok.model.ignore_merges = True
    split = pre_tokenizers.Split(Regex(LLAMA_3), "isolated")
    tok.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    tok.add_tokens(ADDED)
    start, end = (tok.token_to_id(token) for token in ("<|start|>", "<|end|>"))
    template = processors.TemplateProcessing("<|start|> $A <|end|>", None, [("<|start|>", start), ("<|end|>", end)])
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])


CHANGES = (
    unchanged,
    prefix_space,
    prefix_space_outside_offsets,
    trimmed_offsets,
    nfc,
    added_tokens,
    nfc_and_added_tokens,
    whole_pieces_and_template,
)


@pytest.mark.parametrize("change", CHANGES)
def test_the_embedded_vocabulary(tmp_path, texts, change):
    """Constructs that the real files use little or not at all, on the vocabulary that is always there."""
    tok = tokenizers.Tokenizer.from_file(str(EMBEDDED))
    change(tok)
    path = tmp_path / "tokenizer.json"
    tok.save(str(path))
    reference = references.HuggingFace(path)
    ids = comparison.random_ids("default", reference, share(300))
    check(comparison.compare(Tokenizer.from_file(path), reference, texts.items(), ids), minimum=share(1300))


def test_the_embedded_vocabulary_as_ranks(texts):
    """The same tokens as tiktoken reads them: another model, another dialect of pattern."""
    tok = Tokenizer.default()
    ranks = {tok.token_bytes(i): i for i in range(tok.vocab_size - len(tok.added_tokens))}
    definition = {"name": "ranks", "pat_str": CL100K, "mergeable_ranks": ranks, "special_tokens": tok.special_tokens}
    reference = references.OpenAI(definition)
    lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    ours = Tokenizer.from_bytes(b"".join(lines), "tiktoken", pattern=CL100K, special_tokens=tok.special_tokens)
    ids = comparison.random_ids("ranks", reference, share(300))
    check(comparison.compare(ours, reference, texts.items(), ids), minimum=share(1300))
