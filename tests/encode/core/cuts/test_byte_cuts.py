"""Pieces that are encoded part by part have the ids of the whole: the encoder's look-ups and cuts beside the model alone."""

from __future__ import annotations

import base64
import itertools
import random

import pytest
from full_run import share

from tokenweir.encode.tokenizer import Tokenizer, core_of

FILES = {
    "cl100k": "openai/cl100k_base.tiktoken",
    "o200k": "openai/o200k_base.tiktoken",
    "Llama-3": "llama-3.1/tokenizer.json",  # takes tokens whole that merging never makes
    "GPT-2": "gpt2/tokenizer.json",  # only merges count
}


def beyond_ascii(tok, rng):
    """Tokens that are not ASCII, and characters."""
    contents = (tok.token_bytes(i) for i in range(tok.vocab_size))
    words = [text for c in contents if not c.isascii() and (text := c.decode(errors="ignore"))]
    words += [chr(rng.choice((rng.randrange(0x80, 0xD800), rng.randrange(0x4E00, 0x9FA6)))) for _ in range(2000)]
    return words + list("漢字かなカナ，。「」　é🙂𠮷")


def texts(words, rng, count):
    """Runs of such words, with ASCII between some of them."""
    for _ in range(count):
        some = rng.choices(words, k=rng.randrange(1, rng.choice((12, 12, 80))))
        if rng.random() < 0.3:
            some.insert(rng.randrange(len(some)), rng.choice((" ", "a", "1", "!", "\n")))
        yield "".join(some)


@pytest.mark.parametrize("name", [*FILES, "default"])
def test_parts_have_the_ids_of_the_whole(name, data):
    tok = Tokenizer.from_file(data(f"tokenizers/{FILES[name]}")) if name in FILES else Tokenizer.default()
    rng = random.Random(name)
    words = beyond_ascii(tok, rng)
    many = (" ".join(texts(words, rng, 60)) for _ in range(5))  # new parts of several pieces are merged together
    for text in itertools.chain(many, texts(words, rng, share(3000))):
        pieces = core_of(tok).pre_tokenizer.core.pieces(text)
        expected = [token_id for piece in pieces for token_id in core_of(tok).model.encode(piece.decode())[0]]
        for _ in range(3):  # unseen, met, kept
            assert tok.encode(text, add_special_tokens=False, parse_special=False) == expected, text


def ranked(*tokens):
    """A tokenizer of all bytes and then these tokens."""
    ranks = [*(bytes([byte]) for byte in range(256)), *tokens]
    return Tokenizer.from_bytes(
        b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(ranks)),
        "tiktoken",
        pattern=r"\p{L}+|\P{L}+",
        special_tokens={},
    )


def test_a_token_that_merging_never_makes_is_only_found_as_a_piece():
    tok = ranked("漢".encode(), "漢字".encode())  # 字 is no token, so no two tokens make 漢字
    assert tok.encode("漢字") == [257]
    apart = core_of(tok).model.encode("漢字山")[0]
    assert 257 not in apart
    for _ in range(3):
        assert tok.encode("漢字山") == apart
        assert tok.encode("漢字") == [257]


def test_pieces_and_parts_share_a_cache_without_confusion():
    """Thousands of tokens that merging never makes, so that some find no room in the table of tokens."""
    letters = [chr(c) for c in range(0x3B1, 0x3B1 + 50)]
    pairs = [a + b for a in letters for b in letters]
    tok = ranked(*(pair.encode() for pair in pairs))
    for number, pair in enumerate(pairs):
        apart = list(f"漢{pair}漢".encode())
        whole = [256 + number]
        texts = [(f"漢{pair}漢", apart), (pair, whole)] * 2
        for text, expected in texts if number % 2 else reversed(texts):
            assert tok.encode(text) == expected


def test_long_parts_and_more_gaps_than_one_merge_takes():
    """Parts of more than 15 bytes, of more than 16 symbols, and of more than 4 ids, in one piece and in many."""
    letters = "абвгдежз"
    tokens = [a + b for a in letters for b in letters]
    tok = ranked(*(bytes([0xD0, b]) for b in range(0x80, 0xC0)), *(token.encode() for token in tokens))
    rng = random.Random(4)
    parts = ["".join(rng.choices(letters, k=rng.choice((1, 2, 5, 9, 20, 40)))) for _ in range(600)]
    pieces = ["漢".join(["", *rng.choices(parts, k=rng.choice((1, 3, 90)))]) for _ in range(60)]
    model = core_of(tok).model
    expected = [model.encode(piece)[0] for piece in pieces]
    for _ in range(3):
        assert [tok.encode(piece) for piece in pieces] == expected
    joined = [token_id for ids in expected for token_id in (*ids, 0x20)]
    assert Tokenizer.from_spec(tok.spec).encode("".join(piece + " " for piece in pieces)) == joined


@pytest.mark.parametrize(
    "broken",
    [
        b"\xc3\xc1\xe5",  # C3 C1 has the bits of Á
        b"\xc3\xa9\xe4\xf8",  # E4 F8 those of what 丁 begins with
    ],
)
def test_a_token_that_no_text_contains_says_nothing_of_characters(broken):
    tok = ranked("Á".encode(), b"\xe4\xb8", b"\xc3\x81\xe4\xb8", broken)
    for _ in range(3):
        assert tok.encode("ÁÁ丁") == [256, 258, 0x81]
