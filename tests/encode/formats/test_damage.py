"""Damaged files of every format: each loads and works, or is refused with one of the two errors that say so, at little cost.

Small files, and real ones in a full run, are cut off, get bits flipped, stretches removed, doubled or moved, and numbers and
lengths made huge. JSON also gets other values in its places. TOKENWEIR_FULL=1 tries many more, also with a core built with
sanitizers: `scripts/check --sanitize tests/encode/formats/test_damage.py`.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import resource
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random

import pytest
from case_tables import cases
from family_files import family_json
from full_run import FULL
from gguf_files import ROWS, bytes_bpe, keys, pieces, words
from gguf_writer import gguf_bytes
from sentencepiece_files import BYTE, UNUSED, USER, charsmap, piece, small_model, train

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

MUTANTS = 20_000 if FULL else 250
REAL = cases(__file__)["real"]
PATTERN = r"\p{L}+|\p{N}{1,3}+|\s+"
VALUES = [
    *(None, True, -1, 0, 1, 255, 2**20, 2**31, 2**32, 2**63, 2**64, 10**30, 1.5, -1e308, 1e400),
    *("", "a", "Ġ", "▁", "\x00", "<0x0A>", [], {}, [[]], [["a", 0]], {"a": 0}, "(" * 300, "a{9999}{9999}", [None] * 9),
]
HUGE = [b"\xff" * 4, b"\xff" * 8, bytes(8), b"\xff" * 4 + b"\x7f", bytes(7) + b"\x10", b"999999999999"]
TEXT = "<s>Hello  wörld 東京▁ ab <m>\t<sep>é ﬁ e\u0301👩\u200d💻 12345\n\n"
RULES = charsmap({"a": "bc", "ab": " ", "é": "e", "\u3000": " ", "ﬁ": "fi", "b": ""})


def ranks():
    return [*(bytes([byte]) for byte in range(256)), b"ab", b"abc", "日".encode(), b" a"]


def rank_file():
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(ranks()))


def tekken():
    vocab = [{"rank": i, "token_bytes": base64.b64encode(token).decode()} for i, token in enumerate(ranks())]
    special = [{"rank": i, "token_str": token} for i, token in enumerate(["<s>", "</s>", "<m>"])]
    config = {"pattern": PATTERN, "default_vocab_size": 268, "default_num_special_tokens": 8, "version": "v13"}
    return json.dumps({"config": config, "vocab": vocab, "special_tokens": special}).encode()


def gguf(values):
    return gguf_bytes(keys(**values))


def family(name):
    return json.dumps(family_json(name), ensure_ascii=False).encode()


def byte_level():
    more = [("<x>", 3), ("<y>", 4)]
    return gguf(
        bytes_bpe(family_json("Qwen 3.5")["model"], more, bos_token_id=3, add_bos_token=True, chat_template="x")
    )


FILES = {
    "tokenizer.json, byte-level BPE": ("huggingface", lambda: family("Llama 3")),
    "tokenizer.json, BPE with byte fallback": ("huggingface", lambda: family("Llama 2, TinyLlama")),
    "tokenizer.json, Unigram": ("huggingface", lambda: family("Unigram with byte fallback")),
    "tokenizer.json, WordPiece": ("huggingface", lambda: family("BERT, uncased")),
    "SentencePiece BPE": (
        "sentencepiece",
        lambda: small_model(piece("<sep>", 0.0, USER), piece("x", -2.5, UNUSED), normalizer={2: RULES}),
    ),
    "SentencePiece BPE with bytes": (
        "sentencepiece",
        lambda: small_model(*(piece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)), trainer={35: 1}),
    ),
    "SentencePiece Unigram": (
        "sentencepiece",
        lambda: train(model_type="unigram", treat_whitespace_as_suffix=True, normalization_rule_name="identity"),
    ),
    "rank file": ("tiktoken", rank_file),
    "tekken.json": ("tekken", tekken),
    "GGUF, gpt2": ("gguf", byte_level),
    "GGUF, llama": ("gguf", lambda: gguf(pieces(ROWS, bos_token_id=1, add_space_prefix=False))),
    "GGUF, t5": ("gguf", lambda: gguf(pieces(ROWS) | {"model": "t5", "precompiled_charsmap": RULES})),
    "GGUF, bert": (
        "gguf",
        lambda: gguf(words(["▁a", "▁b", "a", "bc"], cls_token_id=2, normalizer__lowercase=False)),
    ),
}


def mutant(data, pick):
    """Return the file damaged in one to three places; half of all damage is a bit, which leaves most of it to be read."""
    for _ in range(pick.choice((1, 1, 2, 3))):
        a = pick.randrange(len(data) or 1)
        b = min(len(data), a + pick.choice((1, 2, 4, 8, 10, 100, 1000)))
        match pick.randrange(10):
            case 0:
                data = data[:a]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:b] + data[a:]
            case 3:
                at = pick.randrange(len(data) or 1)
                data = data[:at] + data[a:b] + data[at:]
            case 4:
                huge = pick.choice(HUGE)
                data = data[:a] + huge + data[a + len(huge) :]
            case _ if data:
                data = data[:a] + bytes([data[a] ^ 1 << pick.randrange(8)]) + data[a + 1 :]
    return data


def place(root, pick):
    """Return a container inside a JSON value and a key of it; those near the root are as likely as the many leaves."""
    value = root
    while True:
        key = pick.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not (isinstance(value[key], (dict, list)) and value[key] and pick.random() < 0.8):
            return value, key
        value = value[key]


def other_value(root, pick):
    """Return JSON with one or two values replaced: by one of `VALUES`, or by one from elsewhere in the file."""
    root = copy.deepcopy(root)
    for _ in range(pick.choice((1, 1, 2))):
        value, key = place(root, pick)
        other, other_key = place(root, pick)
        value[key] = copy.deepcopy(pick.choice(VALUES) if pick.random() < 0.5 else other[other_key])
    return json.dumps(root).encode()


def loads(data, format):
    """Load a file and use it. Return whether it could be loaded."""
    options = {"pattern": PATTERN, "special_tokens": {"<s>": 5000}} if format == "tiktoken" else {}
    try:
        tok = Tokenizer.from_bytes(data, format, **options)
        encoded = tok.encode_with_offsets(TEXT)  # of a Unigram model without an unknown token, refused here
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        assert str(error)
        return False
    assert tok.encode_batch([TEXT])[0].tolist() == encoded.ids
    assert all(0 <= token_id < tok.vocab_size for token_id in encoded.ids)
    tok.decode(range(min(tok.vocab_size, 1000)), byte_fallback="huggingface")
    return True


@contextmanager
def at_most_a_gibibyte_more():
    """Bound the memory of this process. AddressSanitizer maps terabytes, and is left alone."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        resource.setrlimit(resource.RLIMIT_AS, (mapped + (1 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@cache
def content(name):
    format, made = FILES[name]
    return format, made()


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_load_or_are_refused(name):
    format, data = content(name)
    assert loads(data, format)
    root = json.loads(data) if data[:1] == b"{" else None
    outcomes = set()
    with at_most_a_gibibyte_more():
        for number in range(MUTANTS):
            pick = Random(f"{name}/{number}")
            damaged = other_value(root, pick) if root and pick.random() < 0.8 else mutant(data, pick)
            outcomes.add(loads(damaged, format))
    assert outcomes == {True, False}


@pytest.mark.skipif(not FULL, reason="a full run damages real files, too")
@pytest.mark.parametrize("name", REAL)
def test_damaged_real_files_load_or_are_refused(data, name):
    content = data(f"tokenizers/{name}").read_bytes()
    for number in range(200):
        loads(mutant(content, Random(f"{name}/{number}")), REAL[name])
