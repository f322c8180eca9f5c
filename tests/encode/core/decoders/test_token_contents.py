"""Tokens of any length join to what Python joins, from a list and from arrays of every kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.spec import BPE, AddedToken, ByteLevel, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer

LONG = ["x" * n for n in (13, 14, 15, 16, 17, 40, 1000, 70_000)] + ["日" * n for n in (4, 5, 6, 300)]
SIZE = 300  # the ids above those of the tokens name none


@pytest.fixture(scope="module")
def tok(spell):
    tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in LONG]
    model = BPE(vocab={spell(token): i for i, token in enumerate(tokens)}, merges=[])
    added = (AddedToken("<|end|>", special=True), AddedToken("<|a token of many bytes|>", special=True))
    spec = TokenizerSpec(
        model=model,
        pre_tokenizer=ByteLevel(add_prefix_space=False),
        decoder=ByteLevel(),
        added_tokens=added,
        vocab_size=SIZE,
    )
    return Tokenizer.from_spec(spec)


def forms(ids):
    return [ids, tuple(ids), *(np.array(ids, dtype) for dtype in (np.int32, np.uint32, np.int64, np.int16))]


@given(st.lists(st.one_of(st.integers(97, 122), st.integers(250, SIZE - 1)), max_size=200), st.integers(1, 4))
def test_joined_tokens(tok, ids, times):
    ids = ids * times
    contents = [tok.token_bytes(token_id) for token_id in ids]
    control = set(tok.special_tokens.values())
    kept = b"".join(content for token_id, content in zip(ids, contents, strict=True) if token_id not in control)
    for form in forms(ids):
        assert tok.decode_bytes(form) == b"".join(contents)
        assert tok.decode(form, skip_special_tokens=False) == b"".join(contents).decode(errors="replace")
        assert tok.decode(form, skip_special_tokens=True) == kept.decode(errors="replace")


@pytest.mark.parametrize("bad", [-1, -(2**31), SIZE, 2**31 - 1])
@pytest.mark.parametrize("at", [0, 63, 64, 300, 499])
def test_one_bad_id_among_many(tok, bad, at):
    ids = [97] * 500
    ids[at] = bad
    for form in (ids, np.array(ids, np.int32), np.array(ids, np.int64)):
        with pytest.raises(TokenIdError, match=f"token id {bad} is outside the vocabulary"):
            tok.decode(form)
