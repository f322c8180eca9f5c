"""Unigram on the device, of SentencePiece's models and of HuggingFace's, against the CPU's encoder."""

from __future__ import annotations

import base64
import random
import re
from functools import partial

import pytest
from exact_batches import check, check_guards, check_what_is_left_out
from full_run import share
from small_tokenizers import BYTES, of_pieces
from unicode_scalars import SWEPT

from tokenweir.encode import _core
from tokenweir.encode.components.normalize import normalizer_core
from tokenweir.encode.errors import UnsupportedTokenizerError
from tokenweir.encode.formats.sentencepiece import read
from tokenweir.encode.spec import (
    AddedToken,
    Lowercase,
    Metaspace,
    Precompiled,
    PreTokenizerSequence,
    SentencePieceNormalizer,
    TokenizerSpec,
    Unigram,
    WhitespaceSplit,
)
from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.gpu import GpuEncoder
from tokenweir.verify.adversarial import strings

SIGN = "it has a U+2581"
ODD = "it has a character that normalizing makes several of, or may move"
WORDS = PreTokenizerSequence((WhitespaceSplit(), Metaspace(replacement="▁", prepend_scheme="always")))


def of_words(pieces, *, byte_fallback=False, added=(), **components):
    """HuggingFace's form: each word is a piece."""
    vocab = {"<unk>": 0.0, **pieces, **(dict.fromkeys(BYTES, 0.0) if byte_fallback else {})}
    model = Unigram(vocab=tuple(vocab.items()), unk_id=0, byte_fallback=byte_fallback)
    spec = TokenizerSpec(model=model, added_tokens=tuple(added), **{"pre_tokenizer": WORDS, **components})
    return Tokenizer.from_spec(spec)


of_texts = partial(of_pieces, "Unigram")  # SentencePiece's form: a text is a piece

FORMS = {
    "words": of_words,
    "words with bytes": lambda pieces, **more: of_words(pieces, byte_fallback=True, **more),
    "texts": of_texts,
    "texts with bytes": lambda pieces, **more: of_texts(pieces, byte_fallback=True, **more),
    "texts with all spaces": lambda pieces, **more: of_texts(pieces, remove_extra_whitespaces=False, **more),
    "texts without a prefix": lambda pieces, **more: of_texts(
        pieces, remove_extra_whitespaces=False, add_dummy_prefix=False, **more
    ),
}


@pytest.mark.parametrize(
    "family", ["t5-small/tokenizer.json", "sp-test-unigram-en/tokenizer.model", "sp-test-unigram-ja/tokenizer.model"]
)
def test_families(mode_of, data, family):
    tok = Tokenizer.from_file(data(f"tokenizers/{family}"))
    special = [token.content for token in tok.added_tokens][:12]
    documents = [text for group in strings(share(1200), seed=family, special_tokens=special).values() for text in group]
    documents += ["", " ", "</s>", "a</s>", "<s>a<s> b<s><s>", " \n\n x\r\n ", "the " * 90, "............", "x" * 700]
    documents += ["Ｆｕｌｌ　ｗｉｄｔｈ…", "ｶﾞ", "가각힣", "नमस्ते दुनिया", "👩‍👩‍👧 ❤️ 1️⃣", "e\u0301 a\u200bb", "＜/s＞"]
    batch = mode_of(tok, len(family))
    for parse_special in (True, False):
        refused = check(batch, documents, parse_special=parse_special)
        assert set(refused.values()) <= {SIGN, ODD, "it is not UTF-8"}
        assert all("▁" in documents[i] for i, reason in refused.items() if reason == SIGN)
        assert len(refused) < len(documents) // 2


def test_a_joiner_becomes_a_space_unless_its_cluster_is_replaced(mode_of, data):
    """HuggingFace's map drops what follows its rule's characters in a cluster of less than six bytes."""
    tok = Tokenizer.from_file(data("tokenizers/t5-small/tokenizer.json"))
    kept, replaced = "aé中👩 \u0301", "²\u00a0\u0387\u037e"
    documents = [f"x{c}{joiner}y" for joiner in ("\u200d", "\u200c", "\u200d\u0301") for c in kept + replaced]
    documents += ["\u200d", "\u200dx", "x\u200d", "中\u200d ", "👩\u200d💻 a\u200db", "می\u200cشود"]
    refused = check(mode_of(tok), documents)
    assert set(refused.values()) == {ODD}
    assert {documents[i] for i in refused} >= {f"x{c}\u200dy" for c in replaced}
    assert not {documents[i] for i in refused} & {*(f"x{c}\u200dy" for c in "aé中👩"), *documents[-6:]}


@pytest.mark.parametrize("family", ["t5-small/tokenizer.json", "sp-test-unigram-ja/tokenizer.model"])
def test_texts_stay_on_the_device(mode_of, data, family):
    tok = Tokenizer.from_file(data(f"tokenizers/{family}"))
    documents = []
    for name in ("war-and-peace.txt", "ja-wagahai-neko.txt"):
        text = data(f"corpora/{name}").read_text("utf-8")[30_000:42_000]
        documents += [text[at : at + 1500] for at in range(0, len(text), 1500)]
    refused = check(mode_of(tok), documents)
    assert len(refused) <= 1 and set(refused.values()) <= {ODD}


@pytest.mark.parametrize("form", FORMS)
def test_any_scores(mode_of, form):
    """Scores of few values, so that sums are often equal; some characters are unknown."""
    pick = random.Random(form)
    letters = ["a", "b", "é", "日", " ", " ", "ß", "🙂", "\n"]
    for seed in range(share(12)):
        characters = ["a", "b", "é", "日", "▁"]
        made = {"".join(pick.choices(characters, k=pick.randint(1, 5))) for _ in range(40)}
        pieces = {piece: -pick.choice([0.1, 0.2, 0.3, 1.1, 7.7, 1e-9]) for piece in sorted({"a", "▁", *made})}
        added = [AddedToken("<x>"), AddedToken("ab", special=True)]
        tok = FORMS[form](pieces, added=added)
        documents = ["".join(pick.choices(letters, k=k)) for k in [0, 1, 2, 3, 8, 20, 40, 90, 300] for _ in range(3)]
        documents += ["a" * 250, "ab" * 150, " " * 70, " a" * 40, "ß" * 40 + "a"]
        documents += ["".join(pick.choices(["<x>", "ab", "日", "a", " "], k=pick.randint(0, 9))) for _ in range(60)]
        batch = mode_of(tok, seed)
        assert not check(batch, documents)
        assert not check(batch, documents, parse_special=False)


def test_sums_that_begin_anew(mode_of):
    """SentencePiece's are taken back beyond 100,000; rounding decides between pieces of nearly the same score."""
    pick = random.Random(7)
    for seed in range(6):
        made = {"".join(pick.choices("ab▁", k=pick.randint(1, 4))) for _ in range(25)}
        pieces = {
            piece: -pick.choice([30_000.1, 30_000.2, 9_000.7, 59_999.3]) for piece in sorted({"a", "b", "▁", *made})
        }
        documents = ["".join(pick.choices("ab ", k=pick.choice([20, 60, 200]))) for _ in range(40)]
        assert not check(mode_of(of_texts(pieces), seed), documents)


def test_more_pieces_at_a_place_than_a_lane_keeps(mode_of):
    pieces = {"a" * k: -1.0 - k % 3 for k in range(1, 40)}
    for form in (of_words, of_texts):
        assert not check(mode_of(form({"▁": -1.0, **pieces})), ["a" * n for n in (1, 11, 12, 13, 60, 100)])


def test_unknown_characters_that_are_a_piece_together(mode_of):
    """HuggingFace looks neighbouring unknown characters up once more; the best path did not want the piece."""
    tok = of_words({"▁": -1.0, "xy": -500.0, "a": -1.0})
    documents = ["xy", "axya", "xyx", "x", "yx xy"]
    assert tok.encode("xy") == [1, 2]
    assert not check(mode_of(tok), documents)


@pytest.mark.parametrize("n", [30, 31, 32, 33, 255, 256, 257, 2047, 2048])
def test_sizes_around_those_of_words_and_blocks(mode_of, n):
    added = [AddedToken("<x>"), AddedToken("<y>", special=True)]
    for form in (of_words, of_texts):
        tok = form({"▁": -2.0, "a": -1.0, "ab": -1.5, "▁a": -1.2, "b": -2.0}, added=added)
        documents = ["ab" * n, "", "a" * (n - 3) + "<x>", "<y>" + "b" * (n - 3), " " * n, "<x>a<y>" * (n // 7), "a" * n]
        assert not check(mode_of(tok, n), documents)


def test_user_defined_pieces(mode_of):
    tok = of_texts({"▁": -2.0, "a": -1.0, "b": -1.0, "ab": -1.0}, user_defined=["ba", "▁b", "é"])
    pick = random.Random(3)
    documents = ["".join(pick.choices(["a", "b", " ", "é"], k=pick.randint(0, 30))) for _ in range(80)]
    assert not check(mode_of(tok), documents)


def test_guards(mode_of):
    added = [AddedToken("<x>", special=True), AddedToken("é>", special=True)]
    tok = of_words({"▁": -2.0, "a": -1.0, "<x>": -1.0, "▁a": -1.0, "<": -3.0, "x": -3.0, ">": -3.0}, added=added)
    pick = random.Random(2)
    documents = ["".join(pick.choices(["<x>", "a", " ", "é>"], k=pick.randint(0, 9))) for _ in range(60)]
    refused = check_guards(mode_of(tok), documents, pick)
    assert set(refused.values()) == {"it has user text, and the model has control tokens of its own"}
    assert all("<x>" in documents[i] for i in refused)
    assert len(refused) < 50


def test_documents_that_are_left_out(mode_of):
    check_what_is_left_out(mode_of(of_texts({"▁": -2.0, "a": -1.0}), max_bytes=64))


def charsmap(data):
    return read(data("tokenizers/sp-test-unigram-ja/tokenizer.model").read_bytes()).normalizer.charsmap


@pytest.mark.parametrize("huggingface", [True, False])
def test_characters_become_what_the_normalizer_makes_of_them(data, huggingface):
    """Each between two letters; those that are odd or join are not asked for."""
    tables = _core.device_characters(charsmap(data), huggingface).tolist()
    spec = (
        Precompiled(base64.b64encode(charsmap(data)).decode())
        if huggingface
        else SentencePieceNormalizer(charsmap=charsmap(data), remove_extra_whitespaces=False, add_dummy_prefix=False)
    )
    normalizer = normalizer_core(spec)
    odd = 0
    for character in SWEPT:
        entry = tables[ord(character)]
        if entry in (0xFEFEFEFE, 0xFDFDFDFD, 0xFCFCFCFC):
            odd += 1
            continue
        made = entry.to_bytes(4, "little").rstrip(b"\xff").decode()
        normal = normalizer.normalize(f"a{character}a").replace("▁", " ")
        if made == " ":
            assert normal[1:-1].isspace() and len(normal) == 3
        else:
            assert normal == f"a{made}a", hex(ord(character))
    assert odd < 16_000


@pytest.mark.parametrize(
    ("tok", "error"),
    [
        (lambda: of_words({"a": -1.0}, normalizer=Lowercase()), "Lowercase() and "),
        (lambda: of_words({"a": -1.0}, pre_tokenizer=WhitespaceSplit()), "None and WhitespaceSplit() before Unigram"),
        (lambda: of_texts({"a": -1.0}, add_dummy_prefix=False), "SentencePieceNormalizer("),
        (
            lambda: of_texts({"a": -1.0}, user_defined=["a b"]),
            "the user-defined piece 'a b', which would be normalized",
        ),
        (
            lambda: of_words({"a": -1.0}, added=[AddedToken("x")]),
            "an added token of one byte, where a space follows it",
        ),
        (
            lambda: of_words({"a": -1.0}, added=[AddedToken("xy", normalized=True)]),
            "added tokens of normalized text before Unigram",
        ),
        (
            lambda: Tokenizer.from_spec(TokenizerSpec(model=Unigram(vocab=(("a", -1.0),)), pre_tokenizer=WORDS)),
            "a Unigram model without unk_id",
        ),
    ],
)
def test_what_is_refused(device, tok, error):
    with pytest.raises(UnsupportedTokenizerError, match=f"^exact mode: {re.escape(error)}"):
        GpuEncoder(tok(), device=device)
