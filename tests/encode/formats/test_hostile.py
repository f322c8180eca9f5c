"""Files that are damaged or made to do damage: each is read, or refused with one of the two errors that say so."""

from __future__ import annotations

import base64
import json
import random

import pytest

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.tokenizer import Tokenizer

MUTANTS = 5000
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
