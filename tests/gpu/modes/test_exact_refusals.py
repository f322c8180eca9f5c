"""The refusals of exact mode: documents, with a reason, and tokenizers whose constructs the kernels do not have."""

from __future__ import annotations

import random
import unicodedata
from random import Random

import numpy as np
import pytest
from exact_batches import check, run
from msgspec.structs import replace
from small_tokenizers import SPELLS, WORDS, small, spell, splits

from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.spec import (
    NFC,
    NFKC,
    AddedToken,
    ByteLevel,
    Digits,
    Metaspace,
    NormalizerSequence,
    PreTokenizerSequence,
    Split,
    TokenizerSpec,
    WordPiece,
)
from tokenweir.encode.spec.values import Pattern
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu.encoded import SLACK
from tokenweir.gpu.modes.blockbpe import BlockBpeMode
from tokenweir.gpu.modes.exact import LEFT_BYTES, MERGED_BYTES, WALK_BYTES, ByteLevelMode

OVERLONG = [b"\xc0\x80", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"]
NO_CHARACTERS = [b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\x80"]  # surrogates, and what is past Unicode
VALID = ["", "a", "\0", "é 日本", "👨‍👩‍👧‍👦", "I'm <|im_start|> here\n\n", "=" * 100]


def invalid(pick):
    """Bytes that are no UTF-8."""
    while True:
        parts = [b"abc ", "é".encode(), "日本".encode(), "👍".encode(), bytes(pick.choices(range(256), k=3))]
        document = b"".join(pick.choices(parts, k=pick.randint(1, 8)))
        document = document[pick.randint(0, 2) : len(document) - pick.randint(0, 2)]
        try:
            document.decode()
        except UnicodeDecodeError:
            return document


@pytest.mark.parametrize("pre_tokenizer", [WORDS, splits(r"\s|\S")])
def test_bytes_that_no_text_contains_need_no_token(mode_of, pre_tokenizer):
    """Documents with such bytes are refused; until then the kernels go through whole tiles of them, each a piece."""
    never = [0xC0, 0xC1, *range(0xF5, 0x100)]
    full = small([(b"a", b"b"), (b"\xe6", b"\x97"), (b" ", b"ab")], pre_tokenizer)
    vocab = {token: i for token, i in full.spec.model.vocab.items() if i not in never}
    tok = Tokenizer.from_spec(replace(full.spec, model=replace(full.spec.model, vocab=vocab)))
    pick = random.Random(8)
    documents = [bytes(pick.choices([*never, ord("a"), ord("b")], k=length)) for length in (9, 20_000)]
    documents += [bytes([0xFF]) * 9000, "ab 日本 ab".encode(), b"", "\U0010ffff".encode() * 5000]
    found, refused = run(mode_of(tok, max_bytes=20_000), documents)
    assert refused == dict.fromkeys(range(3), "it is not UTF-8")
    assert [found[i] for i in (3, 4, 5)] == [full.encode(documents[i].decode()) for i in (3, 4, 5)]


def test_blockbpe_takes_any_bytes_and_wants_a_token_for_each(device):
    full = small([(b"a", b"b")])
    vocab = {token: i for token, i in full.spec.model.vocab.items() if i != 0xC1}
    tok = Tokenizer.from_spec(replace(full.spec, model=replace(full.spec.model, vocab=vocab)))
    with pytest.raises(UnsupportedTokenizerError, match=r"^blockbpe: a vocabulary without a token for byte 193$"):
        BlockBpeMode(tok, device)


def test_invalid_utf8_is_refused_and_harms_no_other_document(mode_of):
    pick = random.Random(6)
    tok = Tokenizer.default()
    valid = [text.encode() for text in VALID]
    for seed in range(4):
        bad = [*OVERLONG, *NO_CHARACTERS, *(invalid(pick) for _ in range(150))]
        documents = bad + valid * 3
        pick.shuffle(documents)
        refused = check(mode_of(tok, seed), documents)
        assert {documents[i] for i in refused} == {*bad} and {*refused.values()} == {"it is not UTF-8"}


def test_a_character_cut_by_a_document_is_refused_on_both_sides(mode_of):
    batch = mode_of(Tokenizer.default())
    assert set(run(batch, [b"a\xe6", b"\x97\xa5b", b"c", b"\xe6\x97", b"\xa5", b""])[1]) == {0, 1, 3, 4}


def test_text_that_form_c_may_change(mode_of):
    tok = small([(b"e", b"\xcc"), (b"\xcc", b"\x81")], normalizer=NormalizerSequence([NFC()]))
    batch = mode_of(tok)
    unchanged = ["", "plain", "é日本한국어", "קִדָּ", "مُحَمَّد", "ผู้", "a\u0315\u0358"]
    unchanged += ["क\u093c", "q\u0301", "1\u0308", "\u0301", "বাংলা", "தமிழ் மொழி", "é\u0316"]
    changed = ["e\u0301", "a\u0315\u0300", "\u1100\u1161", "\u212b", "\u0344", "न\u093c", "é\u0323"]
    changed += ["\u09c7\u09be", "ê\u0303"]
    refused = check(batch, unchanged + changed)
    assert set(refused.values()) == {"Unicode's form C may change it"}
    assert sorted(refused) == list(range(len(unchanged), len(unchanged + changed)))
    pick = random.Random(8)
    parts = [*"ae é\u0301\u0323\u0327\u05b4ु्ผู้가\u1161", "<x>", *"q\u09c7\u09be"]
    documents = ["".join(pick.choices(parts, k=pick.randint(1, 6))) for _ in range(600)]
    refused = check(batch, documents)
    kept = [d for i, d in enumerate(documents) if i not in refused]
    assert len(kept) > 100
    assert all(unicodedata.normalize("NFC", document) == document for document in kept)


def test_form_c_counts_from_an_added_token_on(mode_of):
    """The text before it is a text of its own to the normalizer."""
    tok = small(normalizer=NFC(), added_tokens=[AddedToken("\u05bc", normalized=False)])
    assert not check(mode_of(tok), ["\u05bc\u05b4", "\u05b4\u05b4"])
    assert check(mode_of(small(normalizer=NFC())), ["\u05bc\u05b4"]) == {0: "Unicode's form C may change it"}


def test_an_oversized_walk_is_refused_and_harms_no_other_document(mode_of):
    """Longer parts are left to the CPU alone, and Chinese of any length has short ones."""
    batch = mode_of(Tokenizer.default(), max_bytes=400)
    documents = [
        "a",
        "b" * 401,
        "c d",
        " " * 500 + "x",
        "\n" * 400,
        "ab " * 300,
        "日" * 1000,
        "=" * (WALK_BYTES + 9),
        "z",
    ]
    assert check(batch, documents) == {7: "oversized piece"}
    assert check(mode_of(Tokenizer.default()), ["日" * (WALK_BYTES // 3 + 9), "a"]) == {0: "oversized piece"}
    assert (batch[0].max_bytes, batch[0].walk_bytes) == (400, WALK_BYTES)


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_a_hostile_document_costs_others_few_passes(mode_of):
    """A pass of a block has three barriers. What would take more passes than a part has bytes goes to the CPU."""
    pick = Random(1)
    hostile = ["".join(pick.choices(LETTERS, k=size)) for size in (MERGED_BYTES, MERGED_BYTES + 1, 60_000)]
    mode, device = mode_of(Tokenizer.default())
    before = device.barriers("merge_pieces") if device.name == "shim" else 0
    refused = check((mode, device), ["the quick fox", *hostile, "a" * MERGED_BYTES, "naïve 生活"])
    assert refused == {3: "oversized piece"}
    if device.name == "shim":
        assert 0 < device.barriers("merge_pieces") - before < 3 * 2 * MERGED_BYTES


def test_the_cpu_encodes_long_parts_alone(mode_of):
    """At the end of tiles and of the text, beside refused documents, and with a character of several bytes."""
    pick = Random(2)
    long = ["".join(pick.choices(LETTERS, k=size)) for size in (1025, 8192, 1500)] + [" " * 3000, "=" * 2000]
    documents = [f"the {one} weir {one}" for one in long] + [b"\xff" + long[1].encode(), *long, "a", "", "ü" + long[0]]
    for seed in range(2):
        assert check(mode_of(Tokenizer.default(), seed), documents) == {5: "it is not UTF-8"}
    too_much = ["".join(pick.choices(LETTERS, k=9000)) for _ in range(LEFT_BYTES // 9000 + 1)]
    documents = ["a", *too_much, "b", " " * 900]
    refused = check(mode_of(Tokenizer.default()), documents)
    assert refused == dict.fromkeys(range(1, len(too_much) + 1), "oversized piece")


def test_a_long_token_leaves_documents(mode_of, data):
    """GPT-2 has tokens of 128 bytes, which may be whole pieces only."""
    tok = Tokenizer.from_file(data("tokenizers/gpt2/tokenizer.json"))
    for max_bytes, refused in ((127, {0: "oversized piece"}), (128, {})):
        assert check(mode_of(tok, max_bytes=max_bytes), ["x" * 300, "a"]) == refused


def test_options_out_of_range(mode_of):
    with pytest.raises(ValueError, match="max_bytes must be from 64 to 16777216, not 63"):
        mode_of(Tokenizer.default(), max_bytes=63)
    with pytest.raises(ValueError, match="workers must be at least 1, not 0"):
        mode_of(Tokenizer.default(), workers=0)


def test_texts_that_kernels_cannot_read(mode_of):
    batch, device = mode_of(Tokenizer.default())
    offsets = device.to_device(np.array([0, 1], np.int64))
    with pytest.raises(ValueError, match="a batch of 0 bytes; 1 to 2146435072 are possible"):
        batch.encode(device.zeros(SLACK, np.uint8), offsets)
    with pytest.raises(ValueError, match="the text of a batch must begin at a multiple of 8"):
        batch.encode(device.zeros(SLACK + 9, np.uint8)[1:], offsets)


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ({"model": WordPiece(vocab={"[UNK]": 0, "a": 1})}, "exact mode: the model is not byte-level BPE: WordPiece"),
        ({"normalizer": NormalizerSequence([NFC(), NFKC()])}, r"exact mode: the normalizer NFKC\(\)"),
        ({"pre_tokenizer": ByteLevel(add_prefix_space=True)}, "cut by patterns: ByteLevel.add_prefix_space=True"),
        ({"pre_tokenizer": SPELLS}, "a pre-tokenizer that does more, or less, than to cut by patterns"),
        (
            {"pre_tokenizer": PreTokenizerSequence([Digits(individual_digits=True), Metaspace()])},
            "exact mode: the model is not byte-level BPE: BPE",
        ),
        (
            {
                "pre_tokenizer": PreTokenizerSequence(
                    [Split(pattern=Pattern(Regex=r"\d"), behavior="MergedWithNext"), SPELLS]
                )
            },
            "a pre-tokenizer that does more, or less, than to cut by patterns",
        ),
        ({"pre_tokenizer": splits(r"a(?=bc)|b")}, "a condition that looks further than the next character"),
        ({"pre_tokenizer": splits(r"\s+$")}, "its searches may fail late, again and again"),
        ({"pre_tokenizer": splits("x*")}, "it can match the empty string"),
        ({"pre_tokenizer": splits(r"[\s\S]+")}, "no two characters have a sure boundary between them"),
        ({"pre_tokenizer": splits("|".join(a + b for a, b in zip("abcdefghijklmnopqr", "ABCDEFGHIJKLMNOPQR", strict=True)))},
         "37 classes of characters; at most 31 are possible"),
    ],
)  # fmt: skip
def test_what_is_refused_at_once(device, components, error):
    tok = small()
    spec = TokenizerSpec(**{"model": tok.spec.model, "pre_tokenizer": WORDS, **components})
    with pytest.raises(UnsupportedTokenizerError, match=error):
        ByteLevelMode(Tokenizer.from_spec(spec), device)


def test_a_control_token_that_text_becomes_by_another_spelling(device):
    """Its name is "<s>Ġ", which is searched for as such; as a token it is "<s> ", which merging makes."""
    merges = [(b"<", b"s"), (b"<s", b">"), (b"<s>", b" ")]
    tok = small(merges, added_tokens=[AddedToken(spell(b"<s> "), special=True)])
    with pytest.raises(UnsupportedTokenizerError, match="control token 258 is made of text that does not spell it"):
        ByteLevelMode(tok, device)
