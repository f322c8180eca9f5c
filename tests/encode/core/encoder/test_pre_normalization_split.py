"""Words that are looked up as they stand in the text: the ids are those of the long way, by normalizer and pre-tokenizer.

Offsets are found the long way, without memory.
"""

from __future__ import annotations

import random

import pytest
from full_run import share

from tokenweir.encode.tokenizer import Tokenizer

PARTS = [
    *(chr(c) for c in range(0x80)),
    *["word", "Words", "a-b", "x" * 20, "y" * 2_000, "don't", "    ", "\r\n", "\n\n", "</s>", "[SEP]", "[ SEP ]"],
    *["é", "e\u0301", "\u0301", " \u0301", *"\u0308\u200d\u200b\u0600\u1100\u1161\u00a0\u3000"],
    *["日", "日本", "中文。", "，", "、", "\uf900", "\U0002f800", "\u3041\u3099", "\u4e00\u0301", "カ\u3099", "한국"],
    *["🙂", "👩\u200d👩", "🇩🇪", "ﬁ", "½", "Å", "İ", "ẞ", "ς", "Σ", "…", "“", "\ufeff", "\u00ad"],
]

BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
NORMALIZERS = {
    "none": None,
    "BERT": BERT,
    "BERT, Chinese as it is": BERT | {"handle_chinese_chars": False},
    "BERT, controls and case as they are": BERT | {"clean_text": False, "lowercase": False},
    "BERT, then NFKC": {"type": "Sequence", "normalizers": [BERT, {"type": "NFKC"}]},
    "NFC": {"type": "NFC"},
    "removed": {"type": "Replace", "pattern": {"String": "a"}, "content": ""},
    "a space": {"type": "Replace", "pattern": {"String": "-"}, "content": " "},
}
PRE_TOKENIZERS = {
    "white space": {"type": "WhitespaceSplit"},
    "BERT": {"type": "BertPreTokenizer"},
    "metaspace": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]},
    "digits": {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Digits", "individual_digits": True}],
    },
    "runs of digits": {
        "type": "Sequence",
        "pretokenizers": [{"type": "BertPreTokenizer"}, {"type": "Digits", "individual_digits": False}],
    },
    "runs of others": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Whitespace"}]},
    "BERT and metaspace": {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}, METASPACE]},
    "first only": {
        "type": "Sequence",
        "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE | {"prepend_scheme": "first"}],
    },
}


def text_of(rng):
    return "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 60)))


def assert_same(tokenizer, rng, texts):
    for _ in range(texts):
        text = text_of(rng)
        for parse_special in (True, False, True):
            expected = tokenizer.encode_with_offsets(text, parse_special=parse_special).ids
            assert tokenizer.encode(text, parse_special=parse_special) == expected, text


@pytest.mark.parametrize("file", ["t5-small/tokenizer.json", "bert-base-uncased/tokenizer.json"])
def test_real_tokenizers(data, file):
    assert_same(Tokenizer.from_file(data(f"tokenizers/{file}")), random.Random(1), share(1_500))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("pre_tokenizer", PRE_TOKENIZERS)
def test_drawn_texts(small, normalizer, pre_tokenizer):
    letters = sorted({c for part in PARTS for c in part} | {"▁", "?"})
    tokenizer = small(
        vocab={letter: 1000 + i for i, letter in enumerate(letters)},
        model={"unk_token": "?"},
        normalizer=NORMALIZERS[normalizer],
        pre_tokenizer=PRE_TOKENIZERS[pre_tokenizer],
    )
    assert_same(tokenizer, random.Random(2), share(150))


@pytest.mark.parametrize("file", ["t5-small/tokenizer.json", "bert-base-uncased/tokenizer.json"])
def test_guarded_characters_become_no_control_token(data, file):
    tokenizer = Tokenizer.from_file(data(f"tokenizers/{file}"))
    rng = random.Random(3)
    for _ in range(200):
        text = text_of(rng)
        guarded = sorted(rng.sample(range(len(text)), rng.randint(0, len(text))))
        expected = tokenizer.encode_with_offsets(text, guarded=guarded).ids
        assert tokenizer.encode(text, guarded=guarded) == expected, (text, guarded)


def test_splits_at_every_place_of_a_block(data):
    """The text is looked at in blocks of 64 bytes: what joins, parts or drops two characters may stand on either side."""
    tokenizer = Tokenizer.from_file(data("tokenizers/bert-base-uncased/tokenizer.json"))
    for before in ("a", " ", "-", "é", "日"):
        for part in ("b", " ", "  ", "-", "e\u0301", " \u0301", "日本", "\U0002f800", "한국", "\x01", "\r\n", ""):
            for size in range(58, 68):
                text = before * size + part + "c"
                assert tokenizer.encode(text) == tokenizer.encode_with_offsets(text).ids, (before, part, size)
