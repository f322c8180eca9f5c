"""WordPiece in the core against HuggingFace's library, on random small vocabularies and on BERT's."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from case_tables import cases
from full_run import share
from tokenizers import models

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError

CASES = cases(__file__)

LETTERS = CASES["letters"]


def both(vocab, unk="[UNK]", prefix="##", most=100, control=()):
    theirs = models.WordPiece(vocab, unk_token=unk, continuing_subword_prefix=prefix, max_input_chars_per_word=most)
    return _core.WordPiece(vocab, unk, prefix, most, control), theirs


def in_characters(text, spans):
    """The library's models give bytes."""
    starts = {}
    at = 0
    for i, c in enumerate(text):
        starts[at] = i
        at += len(c.encode())
    starts[at] = len(text)
    return [(starts[start], starts[end]) for start, end in spans]


def check(ours, theirs, text):
    ids, spans = ours.encode(text)
    expected = theirs.tokenize(text)
    assert ids == [token.id for token in expected], text
    assert [tuple(span) for span in spans.tolist()] == in_characters(text, [token.offsets for token in expected]), text
    return ids


def random_vocabulary(pick, prefix):
    tokens = ["[UNK]"]
    for _ in range(pick.randint(1, 25)):
        text = "".join(pick.choice(LETTERS) for _ in range(pick.randint(0, 5)))
        tokens.append(pick.choice(["", prefix]) + text)
    pick.shuffle(tokens)
    return {token: i + pick.choice([0, 0, 0, -1]) * (i > 0) for i, token in enumerate(dict.fromkeys(tokens))}


def vocabularies(count, seed):
    for case in range(count):
        pick = random.Random(f"{seed} {case}")
        prefix = pick.choice(["##", "##", "##", "", "é", "ab", "\u2581"])
        yield pick, random_vocabulary(pick, prefix), prefix, pick.choice([100, 100, 5, 2, 1, 0, 2**40])


def test_random_vocabularies():
    found = unknown = 0
    for pick, vocab, prefix, most in vocabularies(share(9000), "random"):
        ours, theirs = both(vocab, prefix=prefix, most=most)
        for _ in range(8):
            parts = list(vocab) if pick.random() < 0.6 else LETTERS
            text = "".join(pick.choice(parts).removeprefix(prefix) for _ in range(pick.randint(0, 6)))
            ids = check(ours, theirs, text)
            found += len(ids) > 1
            unknown += ids == [vocab["[UNK]"]]
    assert found > share(2000) and unknown > share(6000)


def test_a_word_of_the_longest_length_and_one_more():
    ours, theirs = both({"[UNK]": 0, "é": 1, "##é": 2}, most=100)
    assert check(ours, theirs, "é" * 100) == [1] + [2] * 99
    assert check(ours, theirs, "é" * 101) == [0]


def test_a_very_long_word():
    """A place in it costs what the longest token has, not what is left of it."""
    n = 1_000_000
    ours = _core.WordPiece({"[UNK]": 0, "a": 1, "##a": 2, "##aaaa": 3}, "[UNK]", "##", n, [])
    assert ours.encode("a" * n)[0] == [1] + [3] * ((n - 1) // 4) + [2] * ((n - 1) % 4)
    assert ours.encode("a" * (n - 1) + "b")[0] == [0]
    assert ours.encode("a" * (n + 1))[0] == [0]


def test_control_tokens_are_not_made_of_guarded_text():
    vocab = {"[UNK]": 0, "ab": 1, "a": 2, "##b": 3, "##bc": 4, "##c": 5}
    ours, theirs = both(vocab, control=[0, 1, 4])
    for text in ("ab", "abc", "abcbc"):
        check(ours, theirs, text)
    assert ours.encode("ab", guarded=True)[0] == [2, 3]
    assert ours.encode("abc", guarded=True)[0] == [2, 3, 5]
    assert ours.encode("x", guarded=True)[0] == [0]
    assert ours.encode("[UNK]", guarded=True)[0] == [0]


def test_guarded_text_has_the_ids_of_a_vocabulary_without_control_tokens():
    for pick, vocab, prefix, most in vocabularies(share(2400), "guarded"):
        control = pick.sample(sorted(set(vocab.values())), min(3, len(set(vocab.values()))))
        unknown = vocab["[UNK]"]
        ours = _core.WordPiece(vocab, "[UNK]", prefix, most, control)
        allowed = {token: i for token, i in vocab.items() if i not in control or i == unknown}
        plain = _core.WordPiece(allowed, "[UNK]", prefix, most, [])
        for _ in range(8):
            text = "".join(pick.choice(LETTERS) for _ in range(pick.randint(1, 6)))
            guarded, spans = ours.encode(text, guarded=True)
            assert guarded == plain.encode(text)[0]
            assert not set(guarded) & (set(control) - {unknown})
            assert all(a[1] == b[0] for a, b in pairwise(spans.tolist()))


@pytest.mark.parametrize(
    ("vocab", "most", "error", "message"),
    [
        ({"a": 1}, 100, TokenizerFileError, r'^model: unk_token "\[UNK\]" is not in the vocabulary$'),
        ({"[UNK]": 0}, -1, TokenizerFileError, r"^model: max_input_chars_per_word is -1$"),
        ({"[UNK]": 0}, 2**64, TokenizerFileError, r"^model: max_input_chars_per_word is 18446744073709551616$"),
        ({"[UNK]": -1}, 100, UnsupportedTokenizerError, r"^token id -1; ids from 0 to 1048574 fit$"),
        ({"[UNK]": 2**70}, 100, UnsupportedTokenizerError, r"^a token id of more than 64 bits; ids from 0 to 1048574"),
        ({"[UNK]": 2**20}, 100, UnsupportedTokenizerError, r"^token id 1048576; ids from 0 to 1048574 fit$"),
        (
            {"[UNK]": 0, "a" * 5000: 1},
            9999,
            UnsupportedTokenizerError,
            r"^model: a WordPiece token of 5000 bytes; at most 4096 are possible$",
        ),
    ],
)
def test_what_is_refused(vocab, most, error, message):
    with pytest.raises(error, match=message):
        _core.WordPiece(vocab, "[UNK]", "##", most, [])


def test_tokens_longer_than_any_word_are_no_matter():
    assert _core.WordPiece({"[UNK]": 0, "a" * 5000: 1}, "[UNK]", "##", 100, []).encode("a" * 100)[0] == [0]
