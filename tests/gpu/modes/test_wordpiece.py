"""WordPiece on the device against the CPU's encoder."""

from __future__ import annotations

import random

import numpy as np
import pytest
from exact_batches import check, run
from full_run import share

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    NFC,
    AddedToken,
    BertNormalizer,
    BertPreTokenizer,
    TokenizerSpec,
    WhitespaceSplit,
    WordPiece,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.modes.wordpiece import WordPieceMode, characters
from tokenweir.verify.adversarial import strings

ODD = "it has a character that normalizing makes several of, or may move"
CASED = BertNormalizer(lowercase=False)
NORMALIZERS = {
    "uncased": BertNormalizer(),
    "cased": CASED,
    "accents stay": BertNormalizer(strip_accents=False),
    "accents go, case stays": BertNormalizer(strip_accents=True, lowercase=False),
    "nothing is cleaned": BertNormalizer(clean_text=False, handle_chinese_chars=False),
    "none": None,
}


def words(*tokens, normalizer=None, prefix="##", max_chars=100, added=()):
    model = WordPiece(
        vocab={token: i for i, token in enumerate(["[UNK]", *tokens])},
        continuing_subword_prefix=prefix,
        max_input_chars_per_word=max_chars,
    )
    return Tokenizer.from_spec(
        TokenizerSpec(model=model, normalizer=normalizer, pre_tokenizer=BertPreTokenizer(), added_tokens=added)
    )


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_adversarial_documents(mode_of, data, normalizer):
    tok = Tokenizer.from_file(data("tokenizers/bert-base-uncased/tokenizer.json"))
    spec = TokenizerSpec(
        model=tok.spec.model,
        normalizer=NORMALIZERS[normalizer],
        pre_tokenizer=BertPreTokenizer(),
        added_tokens=tok.spec.added_tokens,
    )
    tok = Tokenizer.from_spec(spec)
    count = share(3600 if normalizer == "uncased" else 1200)
    groups = strings(count, seed=normalizer, special_tokens=[*tok.special_tokens]).values()
    documents = [text for group in groups for text in group] + [""]
    random.Random(1).shuffle(documents)
    batch = mode_of(tok, len(normalizer))
    left = set(check(batch, documents).values()) | set(check(batch, documents, parse_special=False).values())
    plain = [text for text in documents if text.isascii()]
    assert len(plain) > 10 and not check(batch, plain)
    assert left == (set() if normalizer in ("cased", "none") else {ODD})


def test_every_character(mode_of, data):
    """Each between letters, so that what becomes of it and of what is beside it shows."""
    tok = Tokenizer.from_file(data("tokenizers/bert-base-uncased/tokenizer.json"))
    documents = [f"la{chr(c)}de{chr(c)}{chr(c)} {chr(c)}" for c in [*range(0x3100), *range(0xF900, 0x10000)]]
    assert set(check(mode_of(tok), documents).values()) == {ODD}


ALPHABET = ["a", "b", "é", "日", "\u0301", "\u00ad", " ", ".", "İ", "ß", "\0", "[UNK]", "X"]


def test_any_vocabulary(mode_of):
    """Tokens that begin like others, words that no tokens cover, and characters that are gone in the middle."""
    pick = random.Random(4)
    for seed in range(6):
        letters = ["a", "b", "e", "日", "ß", "x"]
        tokens = {"".join(pick.choices(letters, k=pick.randint(1, 4))) for _ in range(25)}
        tokens |= {pick.choice(["##", ""]) + token for token in tokens}
        tok = words(
            *sorted(tokens),
            normalizer=BertNormalizer(),
            max_chars=pick.choice([2, 5, 100]),
            prefix=pick.choice(["##", ""]),
        )
        documents = ["".join(pick.choices(ALPHABET, k=pick.randint(0, 14))) for _ in range(300)]
        assert set(check(mode_of(tok, seed), documents).values()) <= {ODD}


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100, 101, 8190, 8191, 8192, 8193])
def test_words_of_any_length_anywhere(mode_of, n):
    tok = words("a", "##a", "##aaaa", "b", normalizer=BertNormalizer())
    documents = [
        " " * (n - 1) + "aaaaaab",
        "a" * n,
        "",
        "a\u0301" * n,
        "b " * n,
        "\u0301" * n + "a",
        "a" + "\u00ad" * n + "a",
    ]
    assert not check(mode_of(tok, n, max_bytes=1 << 15), documents)


def test_added_tokens(mode_of):
    added = [AddedToken("[SEP]", special=True), AddedToken("<x>"), AddedToken(" y", lstrip=True)]
    tok = words("a", "##a", "y", "sep", normalizer=BertNormalizer(), added=tuple(added))
    documents = ["a[SEP]a", "[SEP]", "a[sep]", "aa<x>aa<x", "a  y", "A[SEP][SEP]A\u0301"]
    odd = {4: "it has an added token that takes white space along or wants no word beside it"}
    assert check(mode_of(tok), documents) == odd
    assert check(mode_of(tok), documents, parse_special=False) == {}
    found, _ = run(mode_of(tok), ["a[SEP]a"], guards=np.array([2], np.int64))
    assert found == [tok.encode("a[SEP]a", guarded=[2])]


def test_what_is_not_utf8_and_too_much_that_is_gone(mode_of):
    tok = words("a", "##a", normalizer=BertNormalizer())
    documents = ["a", b"a\xff", b"\xe6\x97", "a" + "\u0301" * 50 + "a", "a\u0301a", b"\x97a"]
    invalid = dict.fromkeys((1, 2, 5), "it is not UTF-8")
    assert check(mode_of(tok, max_bytes=64), documents) == invalid | {3: "oversized piece"}


def test_what_becomes_of_characters():
    kinds = characters(words("a", normalizer=BertNormalizer()))
    word, alone, space, gone, odd = range(5)
    expected = {"a": word, "É": word, ".": alone, "水": alone, " ": space, "\t": space, "\u00a0": space, "\0": gone}
    expected |= {"\u0301": gone, "\ufffd": gone, "한": odd, "\u302e": odd}
    assert {c: kinds[ord(c)] >> 24 for c in expected} == expected
    assert [chr(kinds[ord(c)] & 0xFFFFFF) for c in "aÉ.水Ω"] == ["a", "e", ".", "水", "ω"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"normalizer": NFC()}, r"^exact mode: the normalizer NFC\(\) before WordPiece$"),
        ({"pre_tokenizer": WhitespaceSplit()}, r"^exact mode: the pre-tokenizer WhitespaceSplit\(\) before WordPiece$"),
        (
            {"added_tokens": (AddedToken("A", normalized=True),)},
            "^exact mode: added tokens of normalized text before WordPiece$",
        ),
        (
            {"added_tokens": (AddedToken("aa", special=True),)},
            "^exact mode: the control token 'aa' may be made of text$",
        ),
        (
            {"added_tokens": (AddedToken("##a", special=True),)},
            "^exact mode: the control token '##a' may be made of text$",
        ),
        ({"added_tokens": (AddedToken(".", special=True),)}, "^exact mode: the control token '.' may be made of text$"),
    ],
)
def test_what_is_refused(device, change, error):
    spec = {
        "model": WordPiece(vocab={"[UNK]": 0, "a": 1, "aa": 2, "##a": 3, ".": 4}),
        "normalizer": BertNormalizer(),
        "pre_tokenizer": BertPreTokenizer(),
    }
    tok = Tokenizer.from_spec(TokenizerSpec(**{**spec, **change}))
    with pytest.raises(UnsupportedTokenizerError, match=error):
        WordPieceMode(tok, device)


@pytest.mark.parametrize("max_bytes", [-1, 1 << 30])
def test_bad_options(device, max_bytes):
    with pytest.raises(ValueError, match=f"^max_bytes must be from 0 to 1073741823, not {max_bytes}$"):
        WordPieceMode(words("a"), device, max_bytes=max_bytes)
