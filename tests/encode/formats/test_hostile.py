"""Files made to do damage: what a few bytes ask for is bounded, and refused by name."""

from __future__ import annotations

import base64
import json

import pytest
from case_tables import cases
from sentencepiece_files import charsmap, field, small_model

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)


def replace(pattern, content):
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def sequence(kind, parts):
    return {"type": "Sequence", kind: parts}


def byte_level(**options):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False, **options}


def template(ids, times=1):
    return {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 0}}] * times + [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"x": {"id": "x", "ids": ids, "tokens": []}},
    }


def precompiled(rules):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(rules)).decode()}


OVERSIZED = {
    "one replacement": {"normalizer": replace("a", "b" * 1_000_000)},
    "replacements of replacements": {"normalizer": sequence("normalizers", [replace("a", "aa")] * 8)},
    "a replacement for a pattern": {
        "normalizer": {"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b" * 1_000_000}
    },
    "a long beginning": {"normalizer": {"type": "Prepend", "prepend": "b" * 1_000_000}},
    "a replacement in a character map": {"normalizer": precompiled({"a": "b" * 1000})},
    "character maps of character maps": {"normalizer": sequence("normalizers", [precompiled({"a": "a" * 12})] * 2)},
    "normalizers": {"normalizer": sequence("normalizers", [{"type": "NFC"}, {"type": "NFD"}] * 5000)},
    "pre-tokenizers": {"pre_tokenizer": sequence("pretokenizers", [{"type": "Digits"}] * 5000 + [byte_level()])},
    "alphabets of alphabets": {"pre_tokenizer": sequence("pretokenizers", [byte_level()] * 20)},
    "prefixes of prefixes": {
        "pre_tokenizer": sequence("pretokenizers", [byte_level(add_prefix_space=True), split("Ġ")] * 5)
    },
    "patterns": {
        "pre_tokenizer": sequence(
            "pretokenizers", [*(split(rf"(?:a|b)*a(?:a|b){{9}}|{'c' * i}d") for i in range(31)), byte_level()]
        )
    },
    "patterns that replace": {
        "normalizer": sequence(
            "normalizers",
            [
                {"type": "Replace", "pattern": {"Regex": rf"(?:a|b)*a(?:a|b){{9}}|{'c' * i}d"}, "content": "e"}
                for i in range(32)
            ],
        )
    },
    "a template's ids": {"post_processor": template([0] * 1_000_000)},
    "a template's ids again and again": {"post_processor": template([0] * 1000, times=1000)},
    "post-processors": {"post_processor": sequence("processors", [byte_level()] * 20_000)},
    "added tokens": {"added": [{"content": f"{i:06}" + "x" * 4000} for i in range(2200)]},
    "added tokens in bytes": {"added": [{"content": f"{i:06}" + "é" * 1900} for i in range(2300)]},
    "added tokens that grow": {
        "added": [{"content": f"{i}" + "a" * 1000, "normalized": True} for i in range(200)],
        "normalizer": replace("a", "b" * 100),
    },
}
REFUSALS = CASES["refusals"]


@pytest.mark.parametrize("name", OVERSIZED)
def test_what_would_grow_without_bound(tokenizer_json, name):
    data = json.dumps(tokenizer_json(**OVERSIZED[name])).encode()
    with pytest.raises(UnsupportedTokenizerError, match=REFUSALS[name]):
        Tokenizer.from_bytes(data, "huggingface")


def test_what_stays_within_the_bounds(tokenizer_json):
    steps = [replace("a", "b" * 100), precompiled({"c": "d"}), *[{"type": "NFC"}] * 30]
    stages = [*[split("a")] * 31, byte_level()]
    source = tokenizer_json(
        normalizer=sequence("normalizers", steps),
        pre_tokenizer=sequence("pretokenizers", stages),
        post_processor=sequence("processors", [byte_level()] * 31 + [template([0] * 65_536)]),
        added=[{"content": f"<{i}>" + "x" * 4000, "normalized": True} for i in range(500)],
    )
    tok = Tokenizer.from_bytes(json.dumps(source).encode(), "huggingface")
    assert tok.decode(tok.encode("ac<7>", add_special_tokens=False)) == "b" * 100 + "d<7>"


def test_errors_quote_bytes_that_are_no_text(tokenizer_json):
    """The right token of a pair loses as many bytes as the prefix has, though they end inside a character."""
    model = {"continuing_subword_prefix": "x", "unk_token": None}
    source = tokenizer_json(merges=[], vocab={"é": 256}, model=model, pre_tokenizer=None, decoder=None)
    source["model"]["merges"] = [["a", "é"]]
    with pytest.raises(TokenizerFileError, match=r'^merge 0 needs the token "a\\xA9", which the vocabulary lacks$'):
        Tokenizer.from_bytes(json.dumps(source).encode(), "huggingface")


@pytest.mark.parametrize(
    ("merge", "shown"),
    [
        ("é" * 100, '"' + "é" * 40 + '"... (200 bytes)'),
        ("a\x00b\n", r'"a\x00b\x0A"'),
    ],
)
def test_errors_cut_and_escape_what_they_quote(tokenizer_json, merge, shown):
    source = tokenizer_json()
    source["model"]["merges"] = [merge]
    with pytest.raises(TokenizerFileError) as caught:
        Tokenizer.from_bytes(json.dumps(source).encode(), "huggingface")
    assert str(caught.value) == f"merge 0 ({shown}) is not two tokens with a space between"


def test_ranks_that_take_too_long():
    """The splits of a token take time in the square of its length."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"%03d" % i + b"a" * 4093 for i in range(257)]
    data = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
    with pytest.raises(UnsupportedTokenizerError, match=r"^ranked tokens that are too long in total to find"):
        Tokenizer.from_bytes(data, "tiktoken", pattern=".", special_tokens={})


def test_special_tokens_that_no_file_lists():
    """A tekken.json need not list its special tokens: a few bytes could ask for a million."""
    source = {
        "config": {"pattern": ".", "default_vocab_size": 1_000_256, "default_num_special_tokens": 1_000_000},
        "vocab": [{"rank": i, "token_bytes": base64.b64encode(bytes([i])).decode()} for i in range(256)],
    }
    source["config"]["version"] = "v3"
    with pytest.raises(
        UnsupportedTokenizerError, match=r"^config: 1000000 special tokens; at most 65536 are possible$"
    ):
        Tokenizer.from_bytes(json.dumps(source).encode(), "tekken")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (b"\x78\x01" * 1_000_000, r"^model: more than 16 fields beside the pieces, up to byte \d+$"),
        (field(2, b"\x78\x01" * 1_000_000), r"^trainer_spec: more than 131072 fields, up to byte \d+$"),
    ],
)
def test_fields_without_end(more, message):
    assert Tokenizer.from_bytes(small_model(), "sentencepiece")
    with pytest.raises(TokenizerFileError, match=message):
        Tokenizer.from_bytes(small_model() + more, "sentencepiece")
