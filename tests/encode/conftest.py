"""Small tokenizers, written as the JSON that HuggingFace's library and ours both read."""

from __future__ import annotations

import copy
import json

import pytest
import tokenizers

from tokenweir.encode.tokenizer import Tokenizer

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
ALPHABET = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(0x100 + i) for i, byte in enumerate(OTHERS)}
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
WORDS = ["ab", "abc", " a", "bc", " ab", "  ", "é", "éa", "日", "日本", "本", "e\u0301", "<m", "ca"]


def spell_bytes(text):
    """Return a text or bytes in GPT-2's byte alphabet."""
    return "".join(ALPHABET[byte] for byte in (text.encode() if isinstance(text, str) else text))


def merges_towards(words):
    """Return BPE merges that build each word from left to right."""
    return list(dict.fromkeys((w[:cut], w[cut]) for w in map(spell_bytes, words) for cut in range(1, len(w))))


def small_json(*, words=WORDS, merges=None, vocab=(), added=(), model=(), **components):
    """Return the tokenizer.json of a small byte-level BPE tokenizer as a dict.

    Args:
        words: Words of the vocabulary besides the bytes; not used if `merges` are given.
        merges: Pairs in the byte alphabet.
        vocab: More tokens with their ids.
        added: Added tokens as dicts; what a dict leaves out is false.
        model: Further fields of the model.
        components: The other components, such as normalizer and post_processor.

    """
    merges = merges_towards(words) if merges is None else merges
    tokens = {ALPHABET[byte]: byte for byte in range(256)}
    for left, right in merges:
        tokens.setdefault(left + right, len(tokens))
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    source = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": 0, **flags, **token} for token in added],
        "normalizer": None,
        "pre_tokenizer": BYTE_LEVEL,
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        **components,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            **dict(model),
            "vocab": tokens | dict(vocab),
            "merges": merges,
        },
    }
    return copy.deepcopy(source)


def load(source):
    return Tokenizer.from_bytes(json.dumps(source).encode(), "huggingface")


def load_both(source):
    return load(source), tokenizers.Tokenizer.from_str(json.dumps(source))


@pytest.fixture(scope="session")
def spell():
    return spell_bytes


@pytest.fixture(scope="session")
def tokenizer_json():
    return small_json


@pytest.fixture(scope="session")
def small():
    """Function that loads tokenweir's tokenizer of a tokenizer.json, or of `small_json(...)` with these options."""
    return lambda source=None, **options: load(source or small_json(**options))


@pytest.fixture(scope="session")
def both():
    """Function that loads tokenweir's and HuggingFace's tokenizers of `small_json(...)` with these options."""
    return lambda **options: load_both(small_json(**options))
