"""BPE over characters against HuggingFace's library, on random small models.

The models mix everything that decides what a character becomes: tokens with prefix and suffix, unknown tokens that are
characters themselves, partial byte vocabularies, merges of any two tokens in any order, some of them twice.
"""

from __future__ import annotations

import json
import random

import pytest
import tokenizers
from case_tables import cases
from full_run import share
from model_texts import cut, encoded, random_text

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError

CASES = cases(__file__)

LETTERS = [*"abcxyz #</w>", "é", "ü", "日", "本", "▁", "😀", "\u0301", "\0", "\ufffd", "가", "\u200d", "🇩"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def huggingface(vocab, merges, **options):
    model = {"type": "BPE", "dropout": None, "vocab": vocab, "merges": merges, **options}
    return tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))


def ours(vocab, merges, **options):
    given = {name: value for name, value in options.items() if value is not None}
    return _core.CharacterBpe(_core.Vocabulary.plain(vocab), merges, **given)


def ids_of(tokens):
    return {token: i for i, token in enumerate(tokens)}


def random_merges(pick, parts, prefix, count):
    """Merges of the parts and of what they have become; the right part of most has the prefix, if it can."""
    merges = []
    for _ in range(count):
        left, right = pick.choice(parts), pick.choice(parts)
        if prefix and pick.random() < 0.8:
            right = pick.choice([part for part in parts if part.startswith(prefix)] or [right])
        rest = right.encode()[len(prefix.encode()) :].decode(errors="replace")
        if len(prefix.encode()) <= len(right.encode()) and "\ufffd" not in rest and 0 < len(left + rest) <= 12:
            merges.append((left, right))
            parts.append(left + rest)
    if pick.random() < 0.5:
        pick.shuffle(merges)
    return merges + pick.choices(merges, k=3 if merges and pick.random() < 0.4 else 0)


def random_model(pick):
    """Letters, a vocabulary, merges and options."""
    letters = pick.sample(LETTERS, pick.randint(1, 7))
    prefix = pick.choice([""] * 6 + ["##", "é", "a", "▁日"])
    suffix = pick.choice([""] * 5 + ["</w>", "b", "é"])
    fallback = not prefix and not suffix and pick.random() < 0.4
    unknown = pick.choice([None, None, "<unk>", "<unk>", "a", "日"])
    tokens = [
        spelled
        for c in letters
        for spelled in (c, prefix + c, c + suffix, prefix + c + suffix)[: pick.choice([1, 2, 4])]
        if pick.random() < 0.85
    ]
    tokens += [unknown] if unknown else []
    parts = tokens + pick.choices(BYTES, k=pick.choice([0, 0, 0, 2])) * fallback or ["a"]
    if fallback:  # all bytes, or those of some letters
        some = {byte for c in LETTERS if pick.random() < 0.5 for byte in c.encode()}
        tokens += [BYTES[byte] for byte in (range(256) if pick.random() < 0.5 else some)]
    tokens += parts
    merges = random_merges(pick, parts, prefix, pick.randint(0, 25))
    tokens = list(dict.fromkeys(tokens + parts))
    if pick.random() < 0.3:
        pick.shuffle(tokens)
    options = {
        "unk_token": unknown,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": suffix,
        "fuse_unk": pick.random() < 0.5,
        "byte_fallback": fallback,
        "ignore_merges": pick.random() < 0.2,
    }
    return letters, ids_of(tokens), merges, options


def assert_same(model, reference, text):
    expected = reference.encode(text)
    assert encoded(model, text) == (expected.ids, expected.offsets), text
    assert cut(model, text) == expected.ids, text


@pytest.mark.parametrize("seed", range(4))
def test_random_models(seed):
    pick = random.Random(seed)
    for _ in range(share(300)):
        letters, vocab, merges, options = random_model(pick)
        model, reference = ours(vocab, merges, **options), huggingface(vocab, merges, **options)
        for _ in range(25):
            assert_same(model, reference, random_text(pick, letters, LETTERS))


def test_guarded_text_is_that_of_a_model_without_the_control_tokens():
    """The reference's control tokens get names that no text has, and the merges that need them go."""
    pick = random.Random(9)
    guarding = 0
    for _ in range(share(2400)):
        letters, vocab, merges, options = random_model(pick)
        prefix = len(options["continuing_subword_prefix"].encode())
        control = set(pick.sample(sorted(vocab), min(len(vocab), 3))) - {options["unk_token"]}
        allowed = [
            (left, right)
            for left, right in merges
            if not {left, right, left + right.encode()[prefix:].decode()} & control
        ]
        renamed = {f"\ue000{i}" if token in control else token: i for token, i in vocab.items()}
        reference = huggingface(renamed, allowed, **options)
        model = ours(vocab, merges, **options, control=[vocab[token] for token in control])
        for _ in range(25):
            text = random_text(pick, letters, LETTERS)
            expected = reference.encode(text).ids
            assert model.encode(text, guarded=True)[0] == expected
            assert cut(model, text, guarded=True) == expected
            guarding += expected != model.encode(text)[0]
    assert guarding > share(6000)


@pytest.mark.parametrize("letters", ["ab", "aé日", "日本😀"])
def test_long_pieces(letters):
    """From 64 symbols on, another way of merging."""
    pick = random.Random(11)
    for _ in range(10):
        merges = random_merges(pick, list(letters), "", 40)
        vocab = ids_of(dict.fromkeys([*letters, "?", *(left + right for left, right in merges)]))
        model, reference = ours(vocab, merges, unk_token="?"), huggingface(vocab, merges, unk_token="?")
        for length in (*range(60, 70), 1000, 5_000):
            assert_same(model, reference, "".join(pick.choice(letters) for _ in range(length)))
            assert_same(model, reference, letters[0] * length)


def test_pieces_of_many_windows():
    """Thousands of symbols merge in windows that overlap; where they have nothing in common, all at once."""
    pick = random.Random(12)
    for length, most in [(9_000, 30), (20_000, 1_000)] * 12:
        letters = list("abc"[: pick.randint(1, 3)])
        parts = [*letters]
        merges = []
        for _ in range(pick.choice([2, 12, 40])):
            left, right = pick.choice(parts), pick.choice(parts)
            if len(left + right) <= most:
                merges.append((left, right))
                parts.append(left + right)
        if pick.random() < 0.5:
            pick.shuffle(merges)
        vocab = ids_of(dict.fromkeys(parts))
        model, reference = ours(vocab, merges), huggingface(vocab, merges)
        period = "".join(pick.choices(letters, k=pick.randint(1, 9)))
        at = pick.randrange(length)
        for text in ("".join(pick.choices(letters, k=length)), (period * length)[:at] + letters[0] + period * 500):
            assert_same(model, reference, text)


def test_a_piece_that_is_one_token_of_many_windows():
    merges = [("a" * 2**i, "a" * 2**i) for i in range(14)]
    vocab = ids_of(["a", *(left + right for left, right in merges)])
    model, reference = ours(vocab, merges), huggingface(vocab, merges)
    for length in (4_096, 8_191, 16_384, 40_000):
        assert_same(model, reference, "a" * length)


def test_a_character_that_is_no_token_vanishes_and_its_neighbours_merge():
    model = ours(ids_of(["a", "b", "ab"]), ["a b"])
    assert encoded(model, "axb") == ([2], [(0, 2)])
    assert encoded(model, "x") == ([], [])


def test_bytes_overtake_an_unknown_token_that_waits():
    vocab = ids_of(["a", "<unk>", "<0xC3>", "<0xA9>"])
    model = ours(vocab, [], unk_token="<unk>", byte_fallback=True)
    assert encoded(model, "üéa") == ([2, 3, 1, 0], [(0, 1), (0, 1), (1, 2), (2, 3)])


def test_of_a_merge_listed_twice_the_later_place_counts():
    vocab = ids_of(["a", "b", "c", "ab", "bc"])
    assert ours(vocab, ["a b", "b c", "a b"]).encode("abc")[0] == [0, 4]
    assert ours(vocab, ["a b", "b c"]).encode("abc")[0] == [3, 2]


def test_a_version_line_among_the_merges_is_none():
    vocab = ids_of(["#version", "x", "#versionx", *"#version", "ab", "a", "b"])
    assert ours(vocab, ["#version x", "a b"]).encode("ab")[0] == [vocab["ab"]]
    assert huggingface(vocab, ["#version x", "a b"]).encode("ab").ids == [vocab["ab"]]


@pytest.mark.parametrize(("tokens", "merges", "options", "message"), CASES["refused"])
def test_refused(tokens, merges, options, message):
    with pytest.raises(UnsupportedTokenizerError) as error:
        ours(ids_of(tokens), merges, **options)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("merge", "prefix", "message"),
    [
        ("a b", "", 'merge 0 needs the token "ab", which the vocabulary lacks'),
        ("z b", "", 'merge 0 needs the token "z", which the vocabulary lacks'),
        ("a b c", "", 'merge 0 ("a b c") is not two tokens with a space between'),
        ("a b", "##", 'merge 0 continues with "b", which is shorter than the continuing_subword_prefix'),
    ],
)
def test_bad_merges(merge, prefix, message):
    with pytest.raises(TokenizerFileError) as error:
        ours(ids_of(["a", "b"]), [merge], continuing_subword_prefix=prefix)
    assert str(error.value) == message


def test_an_unknown_token_that_is_never_needed_may_be_absent():
    vocab = ids_of(["a", *BYTES])
    model = ours(vocab, [], unk_token="<unk>", byte_fallback=True)
    assert model.encode("é")[0] == [vocab["<0xC3>"], vocab["<0xA9>"]]
