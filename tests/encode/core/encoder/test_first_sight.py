"""Words have the same ids at first sight, when they are known, and after the cache of words has taken over the tokens."""

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


def test_every_word_at_first_sight_and_later(default, words):
    reference = ReferenceEncoder(default.spec)
    expected = [reference.encode(word) for word in words]
    tokenizer = fresh(default)
    for _ in range(2):
        assert [tokenizer.encode(word, parse_special=False) for word in words] == expected
        assert [ids.tolist() for ids in tokenizer.encode_batch(words, parse_special=False, threads=3)] == expected


def test_new_words_in_one_long_text(default, words):
    """More than the first 512, so that caches of other threads grow while they are used."""
    text = "\n".join(words * 3)
    reference = ReferenceEncoder(default.spec).encode(text)
    assert fresh(default).encode(text, parse_special=False) == reference
    texts = ["\n".join(random.Random(i).sample(words, 700)) for i in range(40)]
    expected = [default.encode(text, parse_special=False) for text in texts]
    assert [ids.tolist() for ids in fresh(default).encode_batch(texts, parse_special=False, threads=4)] == expected


def test_guarded_words_are_not_the_tokens_of_the_vocabulary():
    """Guarded text has no control token, whether its words are known or not."""
    tokenizer = Tokenizer.default()
    control = next(iter(tokenizer.special_tokens))
    plain = tokenizer.encode(control, parse_special=False)
    assert len(plain) > 1
    for _ in range(2):
        assert tokenizer.encode(control * 3, parse_special=False) == tokenizer.encode(
            control * 3, guarded=range(len(control) * 3)
        )
        assert tokenizer.encode(control) == [tokenizer.special_tokens[control]]
