"""SentencePiece's BPE against its library, on random small models.

The library normalizes and then merges; what it normalizes is compared elsewhere, so models here leave text as it is, or
the library's own normalized text is the input.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from full_run import share
from model_texts import cut, encoded, random_text
from sentencepiece_files import BPE, BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER, processor_of, unknown_of

from tokenweir.encode import _core
from tokenweir.encode.components.decoders import decoding
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.spec import WordPiece

sentencepiece = pytest.importorskip("sentencepiece", exc_type=ImportError)

LETTERS = [*"abcxy#▁▁", "é", "ü", "日", "本", "😀", "\u0301", "\ufffd", "가", "\u200d", "\x01", "\0"]
BYTES = [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]


def reference(pieces, byte_fallback):
    return processor_of(BPE, pieces, byte_fallback, escape_whitespaces=True)


def ours(pieces, byte_fallback=False, control=()):
    names, scores, types = zip(*pieces, strict=True)
    return _core.SentencePieceBpe(
        names, np.array(scores, float), bytes(types), unknown_of(pieces), byte_fallback, control
    )


def random_model(pick, letters):
    """(piece, score, type) of what the letters and their combinations spell, and whether bytes are there."""
    byte_fallback = pick.random() < 0.4
    draw = pick.choice(
        [
            lambda: -100 * pick.random(),
            lambda: -100 * pick.random(),
            lambda: float(pick.randint(-3, 0)),
            lambda: 0.0,
            lambda: pick.choice([-1e30, -3.3, -3.3000001, 5.0, -0.0, 0.0]),
        ]
    )
    kinds = [NORMAL] * 6 + [USER] * pick.choice([0, 0, 1, 3]) + [UNUSED] * pick.choice([0, 0, 1, 3])
    parts = letters[:]
    for _ in range(pick.randint(0, 25)):
        parts += [part for part in [pick.choice(parts) + pick.choice(parts)] if len(part) <= 10]
    found = {part: (draw(), pick.choice(kinds)) for part in parts if pick.random() < 0.85}
    if pick.random() < 0.2:
        found[pick.choice(letters)] = (0.0, CONTROL)
    pieces = [(piece, *rest) for piece, rest in found.items() if "\0" not in piece or (byte_fallback and piece == "\0")]
    pieces += [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), *(BYTES if byte_fallback else [])]
    if pick.random() < 0.3:
        pick.shuffle(pieces)
    return pieces, byte_fallback


def some_text(pick, letters):
    """Now and then an empty one, or with what the unknown piece is called."""
    return random_text(pick, letters, LETTERS) * (pick.random() < 0.95) + "<unk>" * (pick.random() < 0.1)


def assert_same(model, processor, text):
    expected = processor.encode(text, return_type="offset_mapping")
    assert encoded(model, text) == (expected["ids"], expected["offsets"]), text
    assert cut(model, text) == expected["ids"], text


@pytest.mark.parametrize("seed", range(4))
def test_random_models(seed):
    pick = random.Random(seed)
    for _ in range(share(250)):
        letters = pick.sample(LETTERS, pick.randint(1, 6))
        pieces, byte_fallback = random_model(pick, letters)
        model, processor = ours(pieces, byte_fallback), reference(pieces, byte_fallback)
        for _ in range(25):
            assert_same(model, processor, some_text(pick, letters))


def test_guarded_text_is_that_of_a_model_whose_control_pieces_never_match():
    pick = random.Random(9)
    guarding = 0
    for _ in range(share(1800)):
        letters = pick.sample(LETTERS[:-1], pick.randint(1, 6))
        pieces, byte_fallback = random_model(pick, letters)
        control = pick.sample([i for i, piece in enumerate(pieces) if piece[2] != BYTE], 2)
        control = [i for i in control if i != unknown_of(pieces)]
        without = [(piece, score, CONTROL if i in control else kind) for i, (piece, score, kind) in enumerate(pieces)]
        model, processor = ours(pieces, byte_fallback, control), reference(without, byte_fallback)
        for _ in range(25):
            text = some_text(pick, letters)
            expected = processor.encode(text)
            assert model.encode(text, guarded=True)[0] == expected
            assert cut(model, text, guarded=True) == expected
            guarding += expected != model.encode(text)[0]
    assert guarding > share(3000)


@pytest.mark.parametrize("scores", [lambda pick: -100 * pick.random(), lambda pick: float(pick.randint(-2, 0))])
def test_long_texts(scores):
    """From 64 symbols on, another way of merging."""
    pick = random.Random(11)
    for letters in ("ab", "aé日", "日本😀"):
        parts = list(letters)
        for _ in range(30):
            parts += [part for part in [pick.choice(parts) + pick.choice(parts)] if len(part) <= 12]
        found = {part: (scores(pick), UNUSED if pick.random() < 0.1 else NORMAL) for part in parts}
        pieces = [("<unk>", 0.0, UNKNOWN), *((part, *rest) for part, rest in found.items())]
        model, processor = ours(pieces), reference(pieces, False)
        for length in (*range(62, 68), 1000, 20_000):
            assert_same(model, processor, "".join(pick.choice(letters) for _ in range(length)))
            assert_same(model, processor, letters[0] * length)


def test_of_equal_scores_the_leftmost_merges_first():
    pieces = [("<unk>", 0.0, UNKNOWN), *((piece, -1.0, NORMAL) for piece in ("a", "b", "c", "bc", "ab"))]
    assert encoded(ours(pieces), "abc") == ([5, 3], [(0, 2), (2, 3)])


def test_two_pieces_may_merge_that_are_none():
    pieces = [("<unk>", 0.0, UNKNOWN), ("日本", -1.0, NORMAL)]
    assert encoded(ours(pieces), "日日本本本") == ([0, 1, 0], [(0, 1), (1, 3), (3, 5)])


def test_an_unused_piece_comes_apart_the_way_it_was_put_together():
    """It is a + bc at each place: ab is a piece, but b + c merges first."""
    scores = {"a": -9.0, "b": -9.0, "c": -9.0, "bc": -1.0, "ab": -2.0, "abc": -3.0, "cd": -1.5, "d": -9.0}
    pieces = [("<unk>", 0.0, UNKNOWN)]
    pieces += [(piece, score, UNUSED if piece == "abc" else NORMAL) for piece, score in scores.items()]
    processor, model = reference(pieces, False), ours(pieces)
    for text in ("abc", "abcabcd", "abcxabcd", "abcdabc"):
        assert_same(model, processor, text)


def test_the_last_byte_of_a_character_has_its_span():
    pieces = [("<unk>", 0.0, UNKNOWN), ("a", -1.0, NORMAL), *BYTES]
    assert encoded(ours(pieces, True), "aéa") == ([1, 2 + 0xC3, 2 + 0xA9, 1], [(0, 1), (1, 1), (1, 2), (2, 3)])


def encoder(model, size):
    none = _core.AddedTokens([], [])
    tokens = _core.TokenBytes(_core.Vocabulary.plain({}), [], size, *decoding(None, WordPiece(vocab={})))
    return _core.Encoder(_core.Normalizer([]), _core.PreTokenizer([]), model, none, none, none, tokens)


def test_an_encoder_agrees_with_its_model():
    """With offsets, which rules out cuts, and without."""
    pick = random.Random(13)
    for _ in range(share(600)):
        letters = pick.sample(LETTERS, pick.randint(1, 6))
        pieces, byte_fallback = random_model(pick, letters)
        model = ours(pieces, byte_fallback)
        whole = encoder(model, len(pieces))
        for text in (some_text(pick, letters) for _ in range(20)):
            ids, offsets, *_ = whole.encode_with_offsets(text, True, [])
            assert (ids, list(map(tuple, offsets.tolist()))) == encoded(model, text)
            assert whole.encode(text, True, [], [], []) == ids


@pytest.mark.parametrize(
    ("pieces", "byte_fallback", "message"),
    [
        ([("a", 0.0, NORMAL), ("a", 1.0, UNUSED)], False, 'piece 2 ("a") is there twice'),
        ([("a", 0.0, USER), ("a", 1.0, NORMAL)], False, 'piece 1 ("a") is there twice'),
        ([("a", 0.0, USER), ("a", 1.0, USER)], False, 'piece 2 ("a") is there twice'),
        ([("", 0.0, NORMAL)], False, "piece 1 is empty"),
        ([("a", float("nan"), NORMAL)], False, 'piece 1 ("a") has no number as its score'),
        ([("a", 0.0, 7)], False, 'piece 1 ("a") has the type 7; types are 1 to 6'),
        ([("a", 0.0, 0)], False, 'piece 1 ("a") has the type 0; types are 1 to 6'),
        ([("\0", 0.0, NORMAL)], False, "piece 1 has a null character"),
        ([("a\0", 0.0, NORMAL), *BYTES], True, "piece 1 has a null character"),
        (BYTES[:-1], True, "byte_fallback without a piece for byte 255"),
        ([("<0xg0>", 0.0, BYTE)], True, 'piece 1 ("<0xg0>") is of type 6 and names no byte'),
    ],
)
def test_bad_models(pieces, byte_fallback, message):
    with pytest.raises(TokenizerFileError) as error:
        ours([("<unk>", 0.0, UNKNOWN), *pieces], byte_fallback)
    assert str(error.value) == message


def test_bad_numbers_of_scores_types_and_unknown():
    with pytest.raises(TokenizerFileError, match="1 pieces with 2 scores and 1 types"):
        _core.SentencePieceBpe(["<unk>"], np.array([0.0, 1.0]), b"\2", 0, False)
    with pytest.raises(TokenizerFileError, match="1 pieces with 1 scores and 2 types"):
        _core.SentencePieceBpe(["<unk>"], np.array([0.0]), b"\2\1", 0, False)
    for unknown in (-1, 1, 1 << 40):
        with pytest.raises(TokenizerFileError, match=f"the unknown piece {unknown} is none of 1"):
            _core.SentencePieceBpe(["<unk>"], np.array([0.0]), b"\2", unknown, False)
    with pytest.raises(TokenizerFileError, match="the unknown piece 0 is not of type 2"):
        _core.SentencePieceBpe(["a"], np.array([0.0]), b"\1", 0, False)


@pytest.mark.parametrize("kind", [NORMAL, USER, UNUSED])
def test_a_piece_that_is_too_long(kind):
    ours([("<unk>", 0.0, UNKNOWN), ("a" * 1024, 0.0, kind), ("b" * 1025, 0.0, CONTROL)])
    with pytest.raises(UnsupportedTokenizerError, match="a piece of 1025 bytes; at most 1024 are possible"):
        ours([("<unk>", 0.0, UNKNOWN), ("a" * 1025, 0.0, kind)])
