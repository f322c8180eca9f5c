"""Models without a pre-tokenizer take texts passage by passage, and remember them; the ids are those of the whole text."""

from __future__ import annotations

import random

import pytest

from tokenweir.encode.tokenizer import Tokenizer

PARTS = [
    "the",
    " house",
    "  ",
    "x" * 300,
    "\n",
    "\n\n",
    " " * 400,
    "12345",
    "日本語",
    "日" * 90,
    "🙂",
    "e\u0301",
    "\x00",
    "…",
    ".",
]


@pytest.fixture(scope="module", params=["llama-2/tokenizer.json", "llama-2/tokenizer.model", "gemma/tokenizer.json"])
def tokenizer(request, data):
    return Tokenizer.from_file(data(f"tokenizers/{request.param}"))


def whole(tokenizer, text, **options):
    """The ids that the model gives for the whole text, without memory."""
    return tokenizer.encode_with_offsets(text, **options).ids


def text_of(rng, size):
    text = []
    while size > 0:
        text.append(rng.choice(PARTS))
        size -= len(text[-1])
    return "".join(text)


def test_texts_of_all_lengths(tokenizer):
    rng = random.Random(1)
    for size in [*range(180, 210), *range(1000, 1060, 7), *rng.choices(range(10_000), k=40)]:
        text = text_of(rng, size)
        expected = whole(tokenizer, text)
        assert tokenizer.encode(text) == expected
        assert tokenizer.encode(text) == expected  # from memory


def test_a_text_that_grows_and_one_that_changes(tokenizer):
    rng = random.Random(2)
    text = text_of(rng, 5_000)
    for _ in range(20):
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(PARTS) + text[at:] + text_of(rng, 99)
        assert tokenizer.encode(text) == whole(tokenizer, text)


@pytest.mark.parametrize("letter", ["a", " ", "\n", "日", "é"])
def test_blocks_longer_than_are_kept(tokenizer, letter):
    text = f"before\n{letter * 9_000}\nbehind"
    assert tokenizer.encode(text) == tokenizer.encode(text) == whole(tokenizer, text)


def test_guarded_text_remembers_nothing_of_plain_text(tokenizer):
    text = "<s>" + text_of(random.Random(3), 700) + "</s>\n" * 90
    expected = whole(tokenizer, text, parse_special=False)
    assert tokenizer.encode(text, parse_special=False) == expected
    assert tokenizer.encode(text) == whole(tokenizer, text)
    assert tokenizer.encode(text, parse_special=False) == expected
