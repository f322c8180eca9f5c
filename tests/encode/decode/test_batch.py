from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.decode.batch import DecodeBatch
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.default()


IDS = st.lists(st.integers(0, 300) | st.integers(0, 8191), max_size=4)


@given(st.lists(st.lists(IDS, min_size=3, max_size=3), max_size=6), st.lists(IDS, min_size=3, max_size=3), st.data())
def test_every_slot_gives_what_a_stream_gives(tok, rounds, prompts, data):
    options = data.draw(st.sampled_from([{}, {"skip_special_tokens": False}, {"byte_fallback": "huggingface"}]))
    batch = DecodeBatch(tok, **options)
    slots = [batch.add(prompt) for prompt in prompts]
    streams = [DecodeStream(tok, prompt_ids=prompt, **options) for prompt in prompts]
    for rows in rounds:
        order = data.draw(st.permutations(range(3)))
        texts = batch.step([slots[i] for i in order], [rows[i] for i in order])
        assert texts == [streams[i].feed(rows[i]) for i in order]
    assert [batch.remove(slot) for slot in slots] == [stream.flush() for stream in streams]


def test_one_id_a_slot_from_lists_tuples_and_arrays(tok):
    batch = DecodeBatch(tok)
    slots = [batch.add(), batch.add()]
    a, b = tok.encode("a")[0], tok.encode("b")[0]
    for given_slots, ids in (
        (slots, [a, b]),
        (tuple(slots), (a, b)),
        (np.array(slots), np.array([a, b], np.int32)),
        (slots, [np.int64(a), [b]]),
        (slots, [(a,), np.array([b])]),
    ):
        assert batch.step(given_slots, ids) == ["a", "b"]


def test_rows_of_several_ids_may_be_filled_up(tok):
    batch = DecodeBatch(tok)
    slots = [batch.add() for _ in range(3)]
    a, b = tok.encode("a")[0], tok.encode("b")[0]
    rows = np.array([[a, b, -1], [-1, -1, -1], [b, -1, a]])
    assert batch.step(slots, rows) == batch.step(slots, rows.tolist()) == ["ab", "", "ba"]
    assert batch.step(slots[:1], [[]]) == [""]
    with pytest.raises(TokenIdError, match=r"^slot 0: token id -1 is outside the vocabulary \(0 to "):
        batch.step(slots, [-1, a, a])


def test_a_slot_that_is_there_twice_takes_its_ids_in_order(tok):
    batch = DecodeBatch(tok)
    slot = batch.add()
    first, second = list("é".encode())
    ids = [next(i for i in range(tok.vocab_size) if tok.token_bytes(i) == bytes([byte])) for byte in (first, second)]
    assert batch.step([slot, slot], ids) == ["", "é"]


def test_removed_slots_are_used_again_and_begin_anew(tok):
    batch = DecodeBatch(tok)
    half = next(i for i in range(tok.vocab_size) if tok.token_bytes(i) == b"\xc3")
    first, second = batch.add(), batch.add()
    batch.step([first], [half])
    assert batch.remove(first) == "\ufffd"
    assert len(batch) == 1
    assert batch.add() == first
    assert batch.remove(first) == ""
    assert batch.remove(second) == ""


def test_a_copy_goes_on_by_itself(tok):
    batch = DecodeBatch(tok)
    half, rest = (next(i for i in range(tok.vocab_size) if tok.token_bytes(i) == byte) for byte in (b"\xc3", b"\xa9"))
    slot = batch.add()
    batch.step([slot], [half])
    fork = batch.copy(slot)
    assert batch.step([fork], [rest]) == ["é"]
    assert batch.remove(slot) == "\ufffd"


@pytest.mark.parametrize("bad", [-2, 10**9, 2**40, 2**70])
def test_a_bad_id_is_named_with_its_slot_and_changes_no_sequence(tok, bad):
    batch = DecodeBatch(tok)
    half, rest = (next(i for i in range(tok.vocab_size) if tok.token_bytes(i) == byte) for byte in (b"\xc3", b"\xa9"))
    slots = [batch.add(), batch.add()]
    batch.step(slots, [half, half])
    with pytest.raises(TokenIdError, match="outside the vocabulary"):
        batch.step(slots, [rest, bad])
    with pytest.raises(TokenIdError, match="outside the vocabulary"):
        batch.add([bad])
    with pytest.raises(TypeError):
        batch.step(slots, [rest, "a"])
    assert batch.step(slots, [rest, rest]) == ["é", "é"]
    assert len(batch) == 2


@pytest.mark.parametrize("slot", [-1, 1, 2**40])
def test_an_unknown_slot_is_named_and_changes_no_sequence(tok, slot):
    batch = DecodeBatch(tok)
    half, rest = (next(i for i in range(tok.vocab_size) if tok.token_bytes(i) == byte) for byte in (b"\xc3", b"\xa9"))
    batch.step([batch.add()], [half])
    message = f"^slot {slot} is not in use$"
    with pytest.raises(ValueError, match=message):
        batch.step([0, slot], [half, half])
    with pytest.raises(ValueError, match=message):
        batch.remove(slot)
    with pytest.raises(ValueError, match=message):
        batch.copy(slot)
    assert batch.step([0], [rest]) == ["é"]


def test_a_slot_is_an_integer_of_any_library(tok):
    batch = DecodeBatch(tok)
    assert batch.copy(np.int64(batch.add())) == 1
    assert batch.remove(np.int64(1)) == ""
    for method in (batch.copy, batch.remove):
        with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
            method("0")


def test_as_many_slots_as_ids(tok):
    batch = DecodeBatch(tok)
    with pytest.raises(ValueError, match=re.escape("there are 1 slots and 2 ids or rows of ids")):
        batch.step([batch.add()], [1, 2])
    with pytest.raises(ValueError, match="byte_fallback must be one of"):
        DecodeBatch(tok, byte_fallback="late")
