"""A long text on several threads has the ids that it has on one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tokenweir.encode.tokenizer import Tokenizer

LEAST = 1 << 20
WORDS = ["the", " house", " I'll", "\n\n", "  ", "12345", " été", "日本語", "🙂", "!?", "\r\n\t", "don't", "e\u0301"]


def words(rng, size):
    return "".join(rng.choices(WORDS, k=size // 4))  # each has 4.2 bytes, on average


def long_pieces(rng, size):
    """Pieces that are longer than what two parts have in common, among short ones."""
    text = []
    while size > 0:
        long = rng.choice("ab 1\n日") * rng.choice([1, 300, 5_000, 300_000])
        text.append(long + words(rng, rng.choice([0, 50, 5_000])))
        size -= len(text[-1].encode())
    return "".join(text)


TEXTS = {
    "words": lambda rng: words(rng, 2 * LEAST),
    "long pieces": lambda rng: long_pieces(rng, 3 * LEAST),
    "one letter": lambda rng: "a" * (LEAST + 5),
    "spaces": lambda rng: "hi" + " " * 2 * LEAST + "x",
    "a little more than parts": lambda rng: words(rng, LEAST) + "日" * 3,
}


@pytest.fixture(scope="module")
def scanned():
    return Tokenizer.default()


@pytest.fixture(scope="module")
def split(data):
    return Tokenizer.from_file(data("tokenizers/llama-2/tokenizer.json"))


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", ["scanned", "split"])
def test_on_several_threads(request, name, kind):
    tokenizer = request.getfixturevalue(name)
    text = TEXTS[kind](random.Random(kind))
    alone = tokenizer.encode_batch([text], threads=1)[0]
    assert alone.size > 1
    for threads in (2, 5):
        assert np.array_equal(tokenizer.encode_batch([text], threads=threads)[0], alone)
    assert np.array_equal(tokenizer.encode_array(text), alone)


def test_parts_begin_anywhere(scanned):
    """Pieces of all lengths lie across the places where parts begin."""
    rng = random.Random(1)
    for _ in range(8):
        text = words(rng, rng.randrange(LEAST, LEAST + 99_999)) + rng.choice("a 日") * rng.randrange(9_999)
        several, alone = (scanned.encode_batch([text], threads=threads)[0] for threads in (3, 1))
        assert np.array_equal(several, alone)


def test_added_tokens_and_guarded_text(scanned):
    token = "<|im_start|>"
    text = words(random.Random(2), 2 * LEAST)
    text = f"{text}{token}{text}{token}"
    options = {"guarded": [[text.rindex(token)]]}
    several, alone = (scanned.encode_batch([text], threads=threads, **options)[0] for threads in (3, 1))
    assert np.array_equal(several, alone)
    assert (several == scanned.token_to_id(token)).sum() == 1


def test_the_array_of_a_long_text_is_the_caller_s(scanned):
    """Beyond 2^20 ids an array takes the memory that they were written to, which outlives what made it."""
    text = " the house" * 600_000
    ids = scanned.encode_array(text)
    assert len(ids) > 1 << 20
    expected = ids.copy()
    ids[:] = 7
    assert np.array_equal(scanned.encode_array(text), expected)
    assert (ids == 7).all()
    assert (ids.dtype, ids.ndim, ids.flags.c_contiguous) == (np.int32, 1, True)
    assert scanned.encode(" the house" * 600_000) == expected.tolist()


def test_arrays_outlive_their_tokenizer():
    text = " the house" * 600_000
    arrays = [Tokenizer.default().encode_array(text) for _ in range(3)]
    assert all(np.array_equal(ids, arrays[0]) for ids in arrays)
