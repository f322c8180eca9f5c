"""Ids that are inferred: the text and the number are right, whatever the vocabulary and the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.stream.decode.chat_decoder import ChatDecoder
from tokenweir.stream.engines.lost_ids import LostIds

TOK = Tokenizer.default()
LOST = LostIds(TOK)
CONTROL = {TOK.token_to_id(token) for token in TOK.special_tokens}
PLAIN = [token_id for token_id in range(TOK.vocab_size) if token_id not in CONTROL and TOK.token_bytes(token_id)]
BYTE = {TOK.token_bytes(token_id): token_id for token_id in PLAIN if len(TOK.token_bytes(token_id)) == 1}
TEXTS = st.text(st.sampled_from("a é日👩‍🚀🎉नи\n"), min_size=1, max_size=12)


def shown(ids):
    decoder = ChatDecoder(TOK, reasoning=None)
    return "".join(delta.text for delta in decoder.feed(ids) + decoder.finish() if hasattr(delta, "text"))


@given(text=TEXTS, kept=st.integers(1, 3), data=st.data())
def test_text_and_number_are_right_however_the_model_has_written_it(text, kept, data):
    """Any tokens that make the text, not only those that the tokenizer would choose."""
    raw, ids = text.encode(), []
    while raw:
        length = data.draw(st.integers(1, min(4, len(raw))))
        while raw[:length] not in LOST._ids:
            length -= 1
        ids.append(LOST._ids[raw[:length]])
        raw = raw[length:]
    kept = min(kept, len(ids))
    inferred, known = LOST.before(ids[-kept:], text, len(ids) - kept)
    assert known == ids[-kept:]
    assert len(inferred) == len(ids) - kept
    assert TOK.decode_bytes(inferred + known) == text.encode()


@given(text=TEXTS)
def test_the_tokenizers_own_choice_comes_first(text):
    ids = TOK.encode(text)
    assert LOST.before(ids[-1:], text, len(ids) - 1) == (ids[:-1], ids[-1:])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_an_incomplete_end_is_one_character_that_nobody_can_read(count):
    ids = LOST.incomplete(count)
    assert len(ids) == count
    assert set(shown(ids)) == {"\ufffd"}
    assert len(shown(ids)) == (count + 2) // 3


def test_bytes_that_are_no_character():
    """The server has made U+FFFD of them; so do we."""
    a, lead, more = BYTE[b"a"], BYTE[b"\xf0"], BYTE[b"\x9f"]
    for ids in ([lead, a], [lead, more, a], [lead, lead, a], [a, lead, a]):
        text = shown(ids)
        inferred, known = LOST.before(ids[-1:], text, len(ids) - 1)
        assert (shown(inferred + known), len(inferred)) == (text, len(ids) - 1)
    inferred, known = LOST.before([more], "a\ufffd", 1)  # the last one is no character either
    assert shown(inferred + known) == "a\ufffd" and len(inferred + known) == 2


def test_with_another_tokenizer_the_text_is_kept():
    inferred, known = LOST.before([], "日本", 99)  # more ids than bytes
    assert (shown(inferred), known) == ("日本", [])
