"""Texts cut to a number of tokens: pieces that encode to no more, and lose nothing."""

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

NAMES = ["default", "llama-2/tokenizer.json", "llama-2/tokenizer.model", "bert-base-uncased", "t5-small", "llama-3.1"]
texts = st.lists(
    st.sampled_from(CASES["pieces"]) | st.text(max_size=4),
    max_size=14,
).map("".join)


@pytest.fixture(scope="module", params=NAMES)
def tok(request, data):
    return (
        Tokenizer.default() if request.param == "default" else Tokenizer.from_file(data("tokenizers") / request.param)
    )


@given(texts, st.integers(0, 12), st.sampled_from(["left", "right"]), st.booleans())
def test_a_truncated_text_is_an_end_of_it_and_has_few_enough_tokens(tok, text, max_tokens, side, parse_special):
    added = tok.count("")
    short = tok.truncate(text, added + max_tokens, side=side, parse_special=parse_special)
    assert text.startswith(short) if side == "right" else text.endswith(short)
    assert tok.count(short, parse_special=parse_special) <= added + max_tokens
    if tok.count(text, parse_special=parse_special) <= added + max_tokens:
        assert short == text


@given(texts, st.integers(1, 12))
def test_what_is_kept_is_the_longest_run_of_tokens_that_stands_alone(tok, text, max_tokens):
    """A plain reading of the rule: of all cuts between two tokens, never inside a character, the last that fits."""
    spans = tok.encode_with_offsets(text, add_special_tokens=False).offsets
    fits = [""]
    for k in range(1, min(max_tokens, len(spans) - 1) + 1):
        end = max(end for _, end in spans[:k])
        if (
            end <= min(start for start, _ in spans[k:])
            and tok.count(text[:end], add_special_tokens=False) <= max_tokens
        ):
            fits.append(text[:end])
    kept = tok.truncate(text, max_tokens, add_special_tokens=False)
    assert kept == (text if len(spans) <= max_tokens else max(fits, key=len))


@given(texts, st.integers(6, 16), st.integers(0, 5))
def test_chunks_are_the_text(tok, text, max_tokens, overlap):
    added = tok.count("")
    pieces = list(tok.chunks(text, added + max_tokens, overlap=overlap))
    end = 0
    for piece in pieces:
        assert piece.start <= end < piece.end  # no piece is skipped, and each makes progress
        assert piece.ids == tok.encode(text[piece.start : piece.end])
        assert len(piece.ids) <= added + max_tokens
        if overlap == 0:
            assert piece.start == end
        end = piece.end
    assert end == len(text)
    assert [piece.start for piece in pieces] == sorted({piece.start for piece in pieces})


def test_chunks_of_words():
    tok = Tokenizer.default()
    text = "A weir holds a river back just long enough that it flows over clean."
    ids = tok.encode(text)
    pieces = list(tok.chunks(text, 6))
    assert [token_id for piece in pieces for token_id in piece.ids] == ids  # cut between words, nothing changes
    again = list(tok.chunks(text, 6, overlap=2))
    assert [piece.ids[:2] for piece in again[1:]] == [piece.ids[-2:] for piece in again[:-1]]
    assert tok.truncate(text, 6) == text[: pieces[0].end]
    assert tok.encode(tok.truncate(text, 6, side="left")) == ids[-6:]


def test_special_tokens_count(data):
    tok = Tokenizer.from_file(data("tokenizers/bert-base-uncased"))
    assert tok.encode(tok.truncate("hello big world", 4)) == tok.encode("hello big")
    assert [(piece.start, piece.end) for piece in tok.chunks("hello big world", 3)] == [(0, 6), (6, 10), (10, 15)]


def test_no_character_is_cut():
    tok = Tokenizer.default()
    assert tok.count("𝕊") > 2
    assert tok.truncate("a𝕊", 3) == "a"
    with pytest.raises(ValueError, match=r"^character 1, '𝕊', alone has \d tokens, and max_tokens is 2$"):
        list(tok.chunks("a𝕊", 2))


def test_a_token_that_is_more_than_one_alone_is_cut_between_characters(data):
    tok = Tokenizer.from_file(data("tokenizers/llama-2/tokenizer.json"))  # a text begins with a space of its own
    text = "internationalization\n\n\n" * 3
    pieces = list(tok.chunks(text, 3))
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    assert max(len(piece.ids) for piece in pieces) <= 3


def test_numbers_that_cannot_be():
    tok = Tokenizer.default()
    assert tok.truncate("text", 0) == ""
    for call, message in (
        (lambda: tok.truncate("text", -1), "max_tokens must be at least 0, not -1"),
        (lambda: tok.truncate("text", 1, side="middle"), 'side must be "left" or "right", not \'middle\''),
        (lambda: tok.chunks("text", 0), "max_tokens must be at least 1, not 0"),
        (lambda: tok.chunks("text", 4, overlap=4), "overlap must be from 0 to 3 for max_tokens=4, not 4"),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == message
    for call in (
        lambda: tok.truncate(b"text", 1),
        lambda: tok.chunks(b"text", 1),
    ):
        with pytest.raises(TypeError, match="^text must be str, not bytes$"):
            call()
    for call in (
        lambda: tok.truncate("text", 2.0),
        lambda: tok.truncate("text", "2"),
        lambda: tok.chunks("text", 2.5),
        lambda: tok.chunks("text", 4, overlap=1.0),
    ):
        with pytest.raises(TypeError, match="object cannot be interpreted as an integer"):
            call()
    assert list(tok.chunks("", 5)) == []
