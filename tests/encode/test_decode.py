"""Decoding as ids come: the pieces join to the whole decode, for any ids and any way of cutting them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.spec import BPE, AddedToken, ByteLevel, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer

TOKENS = ["ab", "é", "日", "日本", " a", b"\xe6\x97", b"\xa5a", b"\xf0\x9f", b"\x98\x80", b"\xf0\x9f\x98", b"\x80\x80"]
BYTES = [0x61, 0x80, 0xBF, 0xC0, 0xC3, 0xA9, 0xE0, 0xE4, 0xBD, 0xA0, 0xED, 0xF0, 0x9F, 0x98, 0xF4, 0x90, 0xF5, 0xFF]


@pytest.fixture(scope="module")
def tok(spell):
    tokens = [bytes([byte]) for byte in range(256)] + [t if isinstance(t, bytes) else t.encode() for t in TOKENS]
    model = BPE(vocab={spell(token): i for i, token in enumerate(tokens)}, merges=[])
    added = (AddedToken("<|end|>", special=True), AddedToken("<think>"))
    pre_tokenizer = ByteLevel(add_prefix_space=False)
    return Tokenizer.from_spec(
        TokenizerSpec(model=model, pre_tokenizer=pre_tokenizer, added_tokens=added, vocab_size=272)
    )


def test_the_vocabulary(tok):
    assert tok.vocab_size == 272
    assert [tok.token_bytes(i) for i in (256, 267, 268, 271)] == [b"ab", b"<|end|>", b"<think>", b""]


# Mostly bytes that begin, continue and break characters, but anything may come: gaps, control tokens, long tokens.
ids_of_any_kind = st.lists(st.one_of(st.sampled_from(BYTES), st.integers(256, 271), st.integers(0, 271)), max_size=30)


def reference(tok, ids, skip):
    """The bytes of the tokens, decoded by Python."""
    control = tok.special_tokens.values() if skip else ()
    return b"".join(tok.token_bytes(i) for i in ids if i not in control).decode(errors="replace")


@given(ids_of_any_kind, st.booleans())
@settings(max_examples=300)
def test_steps_join_to_the_whole(tok, ids, skip):
    stream = DecodeStream(tok, skip_special_tokens=skip)
    pieces = []
    for token_id in ids:
        pieces.append(stream.step(token_id))
        assert stream.pending <= 3
    pieces.append(stream.flush())
    whole = tok.decode(ids, skip_special_tokens=skip)
    assert "".join(pieces) == whole == reference(tok, ids, skip)
    assert stream.pending == 0
    assert stream.flush() == ""


@given(ids_of_any_kind, st.lists(st.integers(0, 5), max_size=30))
@settings(max_examples=200)
def test_chunks_give_what_their_steps_give(tok, ids, sizes):
    whole, stepped = DecodeStream(tok), DecodeStream(tok)
    at = 0
    for size in [*sizes, len(ids)]:
        chunk = ids[at : at + size]
        at += size
        assert whole.feed(chunk) == "".join(map(stepped.step, chunk))
        assert whole.pending == stepped.pending
    assert whole.flush() == stepped.flush()


@given(ids_of_any_kind, ids_of_any_kind, st.booleans())
@settings(max_examples=300)
def test_after_a_prompt_comes_what_its_whole_characters_are_followed_by(tok, prompt, ids, skip):
    stream = DecodeStream(tok, prompt_ids=prompt, skip_special_tokens=skip)
    before = DecodeStream(tok, skip_special_tokens=skip).feed(prompt)  # the characters that are complete
    assert before + stream.feed(ids) + stream.flush() == tok.decode(prompt + ids, skip_special_tokens=skip)


@given(ids_of_any_kind, ids_of_any_kind, ids_of_any_kind)
def test_reset_is_a_new_stream(tok, before, prompt, ids):
    used, new = DecodeStream(tok), DecodeStream(tok, prompt_ids=prompt)
    used.feed(before)
    used.reset(prompt)
    assert used.pending == new.pending
    assert [used.step(i) for i in ids] == [new.step(i) for i in ids]
    assert used.flush() == new.flush()
    used.reset()
    assert (used.pending, used.flush()) == (0, "")


@given(ids_of_any_kind, ids_of_any_kind, ids_of_any_kind)
def test_a_copy_goes_its_own_way(tok, before, ids, other_ids):
    stream, untouched = DecodeStream(tok), DecodeStream(tok)
    stream.feed(before), untouched.feed(before)
    copy = stream.copy()
    assert type(copy) is DecodeStream
    copy.feed(other_ids)
    assert stream.feed(ids) + stream.flush() == untouched.feed(ids) + untouched.flush()


def test_a_prompt_that_ends_inside_a_character(tok):
    ids = [*b"Hello ", *"👩".encode()]
    stream = DecodeStream(tok, prompt_ids=ids[:-1])
    assert stream.pending == 3
    assert stream.step(ids[-1]) == "👩"


def test_a_character_is_held_until_it_is_whole_or_cannot_be(tok):
    stream = DecodeStream(tok)
    assert [stream.step(i) for i in "日".encode()] == ["", "", "日"]
    assert [stream.step(i) for i in (0xE4, 0xBD, 0x61)] == ["", "", "\ufffda"]
    assert [stream.step(i) for i in (0xF0, 0xF0, 0xFF)] == ["", "\ufffd", "\ufffd\ufffd"]
    assert [stream.step(0xE4), stream.flush()] == ["", "\ufffd"]


def test_bytes_join_across_a_control_token_that_is_skipped(tok):
    ids = [0xE4, 0xBD, tok.special_tokens["<|end|>"], 0xA0]
    assert DecodeStream(tok).feed(ids) == tok.decode(ids) == "你"
    shown = DecodeStream(tok, skip_special_tokens=False).feed(ids)
    assert shown == tok.decode(ids, skip_special_tokens=False) == "\ufffd<|end|>\ufffd"


BAD = [-1, 272, 2**40, 2**63, -(2**63) - 1, 10**40]


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_id_leaves_the_stream_as_it_was(tok, bad):
    stream = DecodeStream(tok)
    stream.feed([0x61, 0xE4])
    message = rf"^token id {bad} is outside the vocabulary"
    for call in (
        lambda: stream.step(bad),
        lambda: stream.feed([0xBD, bad]),
        lambda: stream.feed(np.array([bad])),
        lambda: stream.reset([bad]),
        lambda: DecodeStream(tok, prompt_ids=[bad]),
        lambda: tok.decode([0x61, bad]),
        lambda: tok.decode_bytes([bad]),
        lambda: tok.token_bytes(bad),
    ):
        with pytest.raises(TokenIdError, match=message):
            call()
    assert stream.feed([0xBD, 0xA0]) == "你"


def test_the_message_tells_which_ids_there_are(tok):
    with pytest.raises(TokenIdError, match=r"^token id 272 is outside the vocabulary \(0 to 271\)$"):
        tok.decode([272])


@pytest.mark.parametrize("wrong", ["5", 5.0, None, b"5"])
def test_an_id_is_an_integer(tok, wrong):
    with pytest.raises(TypeError):
        DecodeStream(tok).step(wrong)
    with pytest.raises(TypeError):
        tok.decode([wrong])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "uint64"])
def test_arrays_of_ids(tok, dtype):
    ids = np.array([0x61, 0x62], dtype)
    assert tok.decode(ids) == DecodeStream(tok).feed(ids) == "ab"
    assert tok.decode_bytes(ids[::-1]) == b"ba"
    assert DecodeStream(tok).step(ids[0]) == "a"


def test_arrays_that_are_not_ids(tok):
    with pytest.raises(TypeError, match=r"^ids must be one-dimensional integers, not float64 of shape \(1,\)$"):
        tok.decode(np.zeros(1))
    with pytest.raises(TypeError, match=r"^ids must be one-dimensional integers, not int64 of shape \(1, 2\)$"):
        tok.decode(np.zeros((1, 2), np.int64))


def test_both_byte_fallback_modes_are_one_for_bytes(tok):
    ids = [0xE4, 0xBD, 0x61]
    assert tok.decode(ids, byte_fallback="huggingface") == tok.decode(ids) == "\ufffda"
    message = r"^byte_fallback must be one of \('eager', 'huggingface'\), not 'strict'$"
    with pytest.raises(ValueError, match=message):
        tok.decode(ids, byte_fallback="strict")
    with pytest.raises(ValueError, match=message):
        DecodeStream(tok, byte_fallback="strict")
