"""Words have the same ids at first sight, in texts of many new ones, on several threads."""

from __future__ import annotations

import random

import pytest

from tokenweir.encode.reference import ReferenceEncoder
from tokenweir.encode.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def default():
    return Tokenizer.default()


def fresh(tokenizer):
    return Tokenizer.from_spec(tokenizer.spec)


@pytest.fixture(scope="module")
def words(default):
    """Tokens, and pairs of tokens joined to one word."""
    rng = random.Random(5)
    names = [text for text in map(default.decode, ([i] for i in range(default.vocab_size))) if "\ufffd" not in text]
    made = [a + b for a, b in zip(rng.sample(names, 600), rng.sample(names, 600), strict=True)]
    return [text for text in rng.sample(names, 1500) + made if text]


def test_new_words_in_one_long_text(default, words):
    """More than the first 512, so that caches of other threads grow while they are used."""
    text = "\n".join(words * 3)
    reference = ReferenceEncoder(default.spec).encode(text)
    assert fresh(default).encode(text, parse_special=False) == reference
    texts = ["\n".join(random.Random(i).sample(words, 700)) for i in range(40)]
    expected = [default.encode(text, parse_special=False) for text in texts]
    assert [ids.tolist() for ids in fresh(default).encode_batch(texts, parse_special=False, threads=4)] == expected
