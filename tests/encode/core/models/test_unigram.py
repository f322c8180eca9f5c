"""Unigram in the core against `tokenizers` and `sentencepiece`, on tiny vocabularies full of ties."""

from __future__ import annotations

import random

import numpy as np
import pytest
from full_run import share
from model_texts import encoded
from sentencepiece_files import BYTE, CONTROL, NORMAL, UNIGRAM, UNKNOWN, UNUSED, USER, processor_of, unknown_of
from tokenizers import Tokenizer, models

from tokenweir.encode._core import HuggingFaceUnigram, SentencePieceUnigram
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError

ALPHABETS = ["abc", "aé日😀", "▁ab1", "a\u0301\ufffd\u200d", "<unk>x", "a", "가각 \n", "a\0b"]
TIES = [
    [-1.0, -2.0, -3.0],
    [-0.1, -0.2, -0.30000000000000004, -0.3, -0.4],
    [0.0],
    [5.0, 10.0, 15.0, 20.0],
    [50.0, 41.0, 33.0, 60.0],
    [-1e6, -1.1, -2.2],
    [3e38, 1e37, -1e37],
]


def random_text(pick, letters, longest):
    if pick.random() < 0.15:
        return pick.choice(letters) * pick.randint(0, longest)
    return "".join(pick.choice(letters) for _ in range(pick.randint(0, longest)))


def random_score(pick, ties):
    score = pick.choice(ties) if pick.random() < 0.8 else pick.uniform(-20, 0)
    return float(np.float32(score))


def byte_pieces(score=0.0):
    return [(f"<0x{byte:02X}>", score) for byte in range(256)]


# -- HuggingFace -------------------------------------------------------------------------------------------------------


def huggingface(vocab, unk_id=0, byte_fallback=False, control=()):
    scores = np.array([score for _, score in vocab], dtype=np.float64)
    return HuggingFaceUnigram([piece for piece, _ in vocab], scores, unk_id, byte_fallback, list(control))


@pytest.mark.parametrize("seed", range(4))
def test_huggingface_on_random_vocabularies(seed):
    pick = random.Random(seed)
    errors = 0
    for _ in range(share(300)):
        letters, ties = pick.choice(ALPHABETS), pick.choice(TIES)
        vocab = [
            (random_text(pick, letters, pick.choice([1, 2, 4, 8])), random_score(pick, ties))
            for _ in range(pick.randint(1, 25))
        ]
        for special in ("<unk>", "<s>", "</s>"):
            if pick.random() < 0.3:
                vocab.insert(pick.randint(0, len(vocab)), (special, random_score(pick, ties)))
        byte_fallback = pick.random() < 0.3
        if byte_fallback:
            vocab += [entry for entry in byte_pieces(-4.0) if pick.random() < 0.95]
        unk_id = None if pick.random() < 0.1 else pick.randrange(len(vocab))
        tokenizer = Tokenizer(models.Unigram(vocab, unk_id=unk_id, byte_fallback=byte_fallback))
        model = huggingface(vocab, unk_id, byte_fallback)
        control = {piece for piece, _ in vocab if pick.random() < 0.2 and not piece.startswith("<0x")}
        guarded = huggingface(vocab, unk_id, byte_fallback, [i for i, (p, _) in enumerate(vocab) if p in control])
        hidden = [(f"\U0010ffff{i}" if piece in control else piece, score) for i, (piece, score) in enumerate(vocab)]
        without_control = huggingface(hidden, unk_id, byte_fallback)
        if pick.random() < 0.6:
            letters = [*letters, "z", "é", "<unk>"]
        for _ in range(20):
            text = random_text(pick, letters, pick.choice([3, 10, 30, 200])) or "a"
            try:
                found = tokenizer.encode(text)
            except Exception:  # noqa: BLE001 -- unknown text without unk_id; the library raises no class of its own
                errors += 1
                with pytest.raises(UnsupportedTokenizerError, match="without unk_id"):
                    model.encode(text)
            else:
                expected = found.ids, found.offsets
                assert encoded(model, text) == expected, (vocab, unk_id, byte_fallback, text)
                if unk_id is not None:
                    assert encoded(guarded, text, guarded=True) == encoded(without_control, text)
                assert encoded(guarded, text) == expected
    assert errors > 0


def test_the_text_of_the_unknown_piece_joins_its_neighbours():
    model = huggingface([("<unk>", 0.0), ("a", -1.0), ("b", -3.0)])
    assert encoded(model, "a<unk>b<unk>cc<unk>b") == (
        [1, 0, 2, 0, 2],
        [(0, 1), (1, 6), (6, 7), (7, 19), (19, 20)],
    )


def test_an_unknown_run_that_is_a_piece_becomes_it():
    # Two unknown characters are worth 2 * (33 - 10), more than the piece; the library then looks the run up.
    model = huggingface([("<unk>", 50.0), ("xy", 41.0), ("b", 33.0)])
    assert encoded(model, "bxyb") == ([2, 1, 2], [(0, 1), (1, 3), (3, 4)])


def test_huggingface_falls_back_to_bytes_for_the_whole_run_or_not_at_all():
    vocab = [("<unk>", -1.0), ("a", -2.0), *byte_pieces(-9.0)]
    first_byte = 2
    ids, offsets = encoded(huggingface(vocab, 0, True), "aé日a")
    assert ids == [1, *(first_byte + byte for byte in "é日".encode()), 1]
    assert offsets == [(0, 1), *[(1, 3)] * 5, (3, 4)]
    missing = [entry for entry in vocab if entry[0] != "<0xC3>"]  # of é
    assert encoded(huggingface(missing, 0, True), "aé日a") == ([1, 0, 1], [(0, 1), (1, 3), (3, 4)])


def test_the_last_of_equal_pieces_holds():
    vocab = [("<unk>", 0.0), ("a", -1.0), ("ab", -9.0), ("a", -2.0), ("b", -2.0)]
    assert encoded(huggingface(vocab), "ab")[0] == [3, 4]


def test_a_control_piece_is_not_found_in_guarded_text():
    vocab = [("<unk>", -9.0), ("</s>", 0.0), ("</", -1.0), ("s", -1.0), (">", -1.0), ("a", -1.0)]
    model = huggingface(vocab, control=[0, 1, 77])
    assert encoded(model, "a</s>a")[0] == [5, 1, 5]
    assert encoded(model, "a</s>a", guarded=True)[0] == [5, 2, 3, 4, 5]
    # Unknown text stays unknown; a run of it does not become a control piece by being looked up.
    lone = huggingface([("<unk>", -9.0), ("xy", 0.0), ("a", -1.0)], control=[0, 1])
    assert encoded(lone, "axya")[0] == [2, 1, 2]
    assert encoded(lone, "axya", guarded=True) == ([2, 0, 2], [(0, 1), (1, 3), (3, 4)])


def test_every_piece_of_a_large_vocabulary_is_found():
    """Each piece is worth more whole, so that it is its own encoding; the sets of first characters are irregular."""
    pick = random.Random(5)
    letters = [chr(c) for c in [*range(1, 0x300, 3), *range(0x4E00, 0x5200), *range(0x1F300, 0x1F400)]]
    pieces = {"".join(pick.choices(letters, k=pick.randint(1, 7))) for _ in range(30_000)}
    pieces |= {chr(0x4E00 + i) + chr(c) for i in range(100) for c in pick.sample(range(1, 128), 40)}
    vocab = [("<unk>", -1.0), *((piece, -1.0) for piece in sorted(pieces))]
    model = huggingface(vocab)
    for i, (piece, _) in enumerate(vocab):
        assert encoded(model, piece)[0] == [i]
    assert model.trie_bytes < 16 * sum(len(piece.encode()) for piece, _ in vocab)


@pytest.mark.parametrize(
    ("vocab", "unk_id", "error", "message"),
    [
        ([("a", 0.0)], 1, TokenizerFileError, "unk_id is 1, but there are 1 pieces"),
        ([], 0, TokenizerFileError, "unk_id is 0, but there are 0 pieces"),
        ([("a", 0.0), ("b", float("nan"))], 0, TokenizerFileError, "the score of piece 1 is nan"),
        ([("a", float("-inf"))], 0, TokenizerFileError, "the score of piece 0 is -inf"),
        ([("a", 0.0), ("b" * 1025, 0.0)], 0, UnsupportedTokenizerError, "piece 1 of 1025 bytes; at most 1024"),
    ],
)
def test_bad_huggingface_models(vocab, unk_id, error, message):
    with pytest.raises(error, match=message):
        huggingface(vocab, unk_id)


def test_as_many_scores_as_pieces():
    with pytest.raises(TokenizerFileError, match="2 pieces, but 1 scores"):
        HuggingFaceUnigram(["a", "b"], np.zeros(1), 0, False, [])


# -- SentencePiece -----------------------------------------------------------------------------------------------------


def sentencepiece(pieces, byte_fallback=False, control=()):
    return SentencePieceUnigram(
        [piece for piece, _, _ in pieces],
        np.array([score for _, score, _ in pieces], dtype=np.float64),
        bytes(kind for _, _, kind in pieces),
        unknown_of(pieces),
        byte_fallback,
        list(control),
    )


def sentencepiece_reference(pieces, byte_fallback=False):
    pytest.importorskip("sentencepiece")
    return processor_of(UNIGRAM, pieces, byte_fallback, escape_whitespaces=False)


@pytest.mark.parametrize("seed", range(4))
def test_sentencepiece_on_random_vocabularies(seed):
    pick = random.Random(seed)
    for _ in range(share(150)):
        letters, ties = pick.choice(ALPHABETS[:-1]), pick.choice(TIES)
        kinds = pick.choice([[NORMAL], [NORMAL, NORMAL, USER], [NORMAL, UNUSED], [NORMAL, USER, UNUSED]])
        vocab = {"<s>": CONTROL, "</s>": CONTROL, letters[-1]: pick.choice(kinds)}
        for _ in range(pick.randint(1, 25)):
            piece = random_text(pick, letters, pick.choice([1, 2, 4, 8]))
            if piece and not piece.startswith("<unk>"):
                vocab.setdefault(piece, pick.choice(kinds))
        byte_fallback = pick.random() < 0.4
        pieces = [(piece, random_score(pick, ties), kind) for piece, kind in vocab.items()]
        if byte_fallback:
            pieces += [(piece, score, BYTE) for piece, score in byte_pieces()]
        pieces.insert(pick.randint(0, len(pieces)), ("<unk>", random_score(pick, ties), UNKNOWN))
        processor = sentencepiece_reference(pieces, byte_fallback)
        model = sentencepiece(pieces, byte_fallback)
        if pick.random() < 0.6:
            letters = [*letters, "z", "é", "<unk>", "\0"]
        for _ in range(20):
            text = random_text(pick, letters, pick.choice([3, 10, 30, 400])) or "a"
            expected = processor.encode(text, return_type="offset_mapping")
            ids, offsets = encoded(model, text)
            assert ids == expected["ids"], (pieces, byte_fallback, text)
            if USER in vocab.values():
                continue  # the library's normalizer gives all characters of a user-defined match one place
            # In the library, all bytes of a character but the last are placed before it; here each has the whole character.
            for (start, end), place in zip(offsets, expected["offsets"], strict=True):
                assert place in ((start, end), (start, start))


def test_sums_begin_again_beyond_100_000():
    """`b` `ab` and `ba` `b` are worth the same; what is lost by rounding the first sum decides."""
    for worth, ids in ((1e5, [1, 2]), (1.00001e5, [3, 1]), (2e5, [3, 1])):
        pieces = [("<unk>", 0.0, UNKNOWN), ("b", -2.2, NORMAL), ("ab", -worth, NORMAL), ("ba", -worth, NORMAL)]
        assert encoded(sentencepiece(pieces), "bab")[0] == ids
        assert sentencepiece_reference(pieces).encode("bab") == ids


def test_piece_types():
    pieces = [
        ("<unk>", 0.0, UNKNOWN),
        ("<s>", 0.0, CONTROL),
        ("a", -3.0, NORMAL),
        ("<", -3.0, NORMAL),
        ("aa", 5.0, UNUSED),
        ("abc", -100.0, USER),
    ]
    model = sentencepiece(pieces)
    assert encoded(model, "aaa")[0] == [2, 2, 2]
    assert encoded(model, "<s>") == ([3, 0], [(0, 1), (1, 3)])
    assert encoded(model, "aabcxya") == ([2, 5, 0, 2], [(0, 1), (1, 4), (4, 6), (6, 7)])
    with_bytes = [*pieces, *((piece, score, BYTE) for piece, score in byte_pieces())]
    assert encoded(sentencepiece(with_bytes, True), "é日") == (
        [len(pieces) + byte for byte in "é日".encode()],
        [(0, 0), (0, 1), (1, 1), (1, 1), (1, 2)],  # the last byte has the character, as in the library
    )


@pytest.mark.parametrize(
    ("piece", "score", "kind", "message"),
    [
        ("", 0.0, NORMAL, "piece 1 is empty"),
        ("a\0b", 0.0, NORMAL, "piece 1 has a null character"),
        ("a", float("inf"), NORMAL, "the score of piece 1 is inf"),
        ("a", 1e39, NORMAL, "the score of piece 1 is inf"),
    ],
)
def test_bad_sentencepiece_pieces(piece, score, kind, message):
    with pytest.raises(TokenizerFileError, match=message):
        sentencepiece([("<unk>", 0.0, UNKNOWN), (piece, score, kind)])


def test_bad_sentencepiece_models():
    with pytest.raises(TokenizerFileError, match="byte_fallback, but no piece <0x00>"):
        sentencepiece([("<unk>", 0.0, UNKNOWN), ("<0x41>", 0.0, BYTE)], byte_fallback=True)
    with pytest.raises(TokenizerFileError, match="unk_id is 1, which is not the unknown piece"):
        SentencePieceUnigram(["<unk>", "a"], np.zeros(2), bytes([UNKNOWN, NORMAL]), 1, False, [])
    with pytest.raises(TokenizerFileError, match="unk_id is 2, which is not"):
        SentencePieceUnigram(["<unk>", "a"], np.zeros(2), bytes([UNKNOWN, NORMAL]), 2, False, [])
    with pytest.raises(TokenizerFileError, match="2 pieces, but 1 types"):
        SentencePieceUnigram(["<unk>", "a"], np.zeros(2), bytes([UNKNOWN]), 0, False, [])


def test_very_long_text_of_one_letter():
    """No place of it is free of pieces that cross, so the lattice is as long as the text."""
    pieces = [("<unk>", 0.0, UNKNOWN), ("a", -1.0, NORMAL), ("aa", -1.5, NORMAL), ("aaa", -2.0, NORMAL)]
    ids, offsets = sentencepiece(pieces).encode("a" * 300_001)
    assert ids == sentencepiece_reference(pieces).encode("a" * 300_001)
    assert offsets[-1].tolist()[1] == 300_001
