"""Files that are damaged or made to do damage: each is read, or refused with one of the two errors that say so."""

from __future__ import annotations

import base64
import json
import random

import pytest
from full_run import share
from sentencepiece_files import charsmap, field, small_model

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

MUTANTS = share(5000)
PATTERN = r"\p{L}+|\p{N}{1,3}+|\s+"
VALUES = [
    None,
    True,
    -1,
    0,
    1,
    2**20,
    2**31,
    2**32,
    2**63,
    2**64,
    10**30,
    1.5,
    1e400,
    "",
    "a",
    "Ġ",
    "\x00",
    [],
    {},
    [[]],
]


def load_or_refuse(data, format, **options):
    """Load and use it. Returns whether it could be loaded."""
    try:
        tok = Tokenizer.from_bytes(data, format, **options)
    except (TokenizerFileError, UnsupportedTokenizerError) as error:
        assert str(error)
        return False
    text = "ab <m> é日本 <m>\n"
    ids = tok.encode_with_offsets(text).ids
    assert tok.encode_batch([text])[0].tolist() == ids
    assert all(0 <= token_id < tok.vocab_size for token_id in ids)
    tok.decode(range(min(tok.vocab_size, 1000)))
    return True


def mutants(data, pick):
    """The file cut off, with bits flipped, and with a stretch removed, doubled or put elsewhere."""
    for i in range(MUTANTS):
        a, b = sorted(pick.randrange(len(data)) for _ in range(2))
        b = min(b, a + pick.choice([1, 2, 10, 100]))
        match i % 6:
            case 0:
                yield data[:a]
            case 1 | 2:
                yield data[:a] + bytes([data[a] ^ 1 << pick.randrange(8)]) + data[a + 1 :]
            case 3:
                yield data[:a] + data[b:]
            case 4:
                yield data[:b] + data[a:]
            case 5:
                at = pick.randrange(len(data))
                yield data[:at] + data[a:b] + data[at:]


@pytest.fixture(scope="module")
def source(tokenizer_json):
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<m>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"<m>": {"id": "<m>", "ids": [270], "tokens": ["<m>"]}},
    }
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return tokenizer_json(
        words=["ab", "日本", " a"],
        normalizer={"type": "NFC"},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [split, byte_level]},
        post_processor={"type": "Sequence", "processors": [byte_level, template]},
        added=[{"content": "<m>", "special": True, "rstrip": True}, {"content": "é", "normalized": True}] * 5
        + [{"content": f"<{i}>"} for i in range(9)],
    )


def test_damaged_tokenizer_json(source):
    data = json.dumps(source, ensure_ascii=False).encode()
    assert load_or_refuse(data, "huggingface")
    loaded = [load_or_refuse(mutant, "huggingface") for mutant in mutants(data, random.Random(1))]
    assert 0 < sum(loaded) < len(loaded)


def test_damaged_rank_file():
    ranks = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", "日".encode(), b" a"]
    data = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(ranks))
    options = {"pattern": PATTERN, "special_tokens": {"<m>": 300}}
    assert load_or_refuse(data, "tiktoken", **options)
    loaded = [load_or_refuse(mutant, "tiktoken", **options) for mutant in mutants(data, random.Random(2))]
    assert 0 < sum(loaded) < len(loaded)


def test_damaged_tekken_json():
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", "日".encode(), b" a"]
    sizes = {"default_vocab_size": 268, "default_num_special_tokens": 8}
    source = {
        "config": {"pattern": PATTERN, **sizes, "version": "v13"},
        "vocab": [{"rank": i, "token_bytes": base64.b64encode(token).decode()} for i, token in enumerate(tokens)],
        "special_tokens": [{"rank": i, "token_str": token} for i, token in enumerate(["<s>", "</s>", "<m>"])],
    }
    data = json.dumps(source).encode()
    assert load_or_refuse(data, "tekken")
    loaded = [load_or_refuse(mutant, "tekken") for mutant in mutants(data, random.Random(4))]
    assert 0 < sum(loaded) < len(loaded)
    for way in places(source):
        for wrong in VALUES if way else ():
            load_or_refuse(json.dumps(changed(source, way, wrong)).encode(), "tekken")


def changed(source, way, value):
    """A copy with another value at a place."""
    copy = json.loads(json.dumps(source))
    place = copy
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return copy


def places(value, way=()):
    """The paths of everything inside a JSON value, but of no more than three entries of each long container."""
    yield way
    inside = list(value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ())
    for key in inside if len(inside) <= 12 else inside[:3]:
        yield from places(value[key], (*way, key))


def test_any_value_anywhere(source):
    pick = random.Random(3)
    for way in places(source):
        if not way:
            continue
        for wrong in pick.sample(VALUES, 7):
            load_or_refuse(json.dumps(changed(source, way, wrong)).encode(), "huggingface")


# -- files made to do damage: what a few bytes ask for is bounded, and refused by name ----------------------------------


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
REFUSALS = {
    "one replacement": r"^a normalizer that may make a text more than 128 times as long$",
    "replacements of replacements": r"^a normalizer that may make a text more than 128 times as long$",
    "a replacement for a pattern": r"^a normalizer that may make a text more than 128 times as long$",
    "a long beginning": r"^a normalizer that may make a text more than 128 times as long$",
    "a replacement in a character map": r"^precompiled_charsmap: a replacement of more than 128 bytes$",
    "character maps of character maps": r"^a normalizer that may make a text more than 128 times as long$",
    "normalizers": r"^normalizer: a Sequence of more than 32 steps$",
    "pre-tokenizers": r"^pre_tokenizer: a Sequence of more than 32 stages$",
    "alphabets of alphabets": r"^pre_tokenizer: it may make a text 512 times as long; at most 256 times is possible$",
    "prefixes of prefixes": r"^pre_tokenizer: it may make a text 1024 times as long; at most 256 times is possible$",
    "patterns": r"^patterns that need [\d,]+ cells in total, more than 100,000$",
    "patterns that replace": r"^patterns that need [\d,]+ cells in total, more than 100,000$",
    "a template's ids": r"^post_processor: a template of more than 65536 ids$",
    "a template's ids again and again": r"^post_processor: a template of more than 65536 ids$",
    "post-processors": r"^post_processor: a Sequence of more than 32 parts$",
    "added tokens": r"^added tokens of more than 16777216 characters in total$",
    "added tokens in bytes": r"^added tokens of more than 8388608 bytes in total$",
    "added tokens that grow": r"^added tokens of more than 16777216 characters in total$",
}


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
