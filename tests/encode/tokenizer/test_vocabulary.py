"""Names and ids of tokens, and tokenizers with more of them."""

from __future__ import annotations

import numpy as np
import pytest

from tokenweir.encode.spec import AddedToken, RankBPE, TokenizerSpec
from tokenweir.encode.tokenizer import Tokenizer


def test_names_and_ids(tok):
    assert [tok.token_to_id(name) for name in ("a", "ab", "Ġa", "<s>", "nowhere", "")] == [
        97,
        256,
        258,
        275,
        None,
        None,
    ]
    assert [tok.id_to_token(i) for i in (97, 256, 258, 275, 10**9, -1)] == ["a", "ab", "Ġa", "<s>", None, None]
    assert tok.special_tokens == {"<s>": 275, "</s>": 276}
    assert repr(tok) == "Tokenizer(HuggingFace tokenizer.json, 279 ids, 4 added tokens)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tok: tok.id_to_token("a"), "id_to_token() takes ids, not str; token_to_id() takes tokens"),
        (lambda tok: tok.id_to_token(None), "ids must be a sequence of int, not NoneType"),
        (lambda tok: tok.id_to_token(1.0), "ids must be a sequence of int, not float"),
        (
            lambda tok: tok.id_to_token([[1]]),
            "ids[0] must be int, not list",
        ),
    ],
)
def test_what_is_no_name_and_no_id(tok, call, message):
    with pytest.raises(TypeError) as caught:
        call(tok)
    assert str(caught.value) == message


def test_names_of_a_rank_files_tokens():
    ranks = {bytes([byte]): byte for byte in range(256)} | {"é".encode(): 256, b"\xe4\xbd": 257}
    tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks), added_tokens=(AddedToken("<s>", id=300),)))
    assert [tok.token_to_id(name) for name in ("a", "é", "<s>", "日")] == [97, 256, 300, None]
    assert [tok.id_to_token(i) for i in (97, 256, 257, 258, 300)] == ["a", "é", r"\xe4\xbd", None, "<s>"]


def test_more_added_tokens(tok):
    more = tok.with_added_tokens(["<n>", AddedToken("<s>", rstrip=True, special=True), "ab"])
    assert [(t.content, t.id) for t in more.added_tokens] == [
        ("<s>", 275),
        ("</s>", 276),
        ("<m>", 277),
        ("éa", 278),
        ("<n>", 279),
        ("ab", 256),
    ]
    assert more.encode("<n><s> ab") == [279, 275, 256]
    assert tok.token_to_id("<n>") is None
    assert tok.encode_with_offsets("<s> ").offsets[0] == (0, 3)


def test_one_token_is_not_several(tok):
    with pytest.raises(
        TypeError, match=r"^tokens must be several tokens, not one str: write with_added_tokens\(\[token\]\)"
    ):
        tok.with_added_tokens("<n>")


def test_more_added_tokens_do_not_move_those_that_play_a_role(small):
    spec = small().spec
    tok = Tokenizer.from_spec(
        TokenizerSpec(model=spec.model, pre_tokenizer=spec.pre_tokenizer, special_roles={"pad_token": "<pad>"})
    )
    more = tok.with_added_tokens(["<n>"])
    assert (tok.pad_id, more.pad_id, more.token_to_id("<n>")) == (275, 275, 276)
    assert more.special_tokens == {"<pad>": 275}


def test_more_added_tokens_beside_ranks():
    ranks = {bytes([byte]): byte for byte in range(256)}
    tok = Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks), added_tokens=(AddedToken("<s>", id=300),)))
    more = tok.with_added_tokens(["<m>", AddedToken("<s>", lstrip=True), AddedToken("<k>", id=280), "<n>"])
    assert {t.content: t.id for t in more.added_tokens} == {"<s>": 300, "<m>": 301, "<k>": 280, "<n>": 302}
    assert more.encode("a <s><n>") == [97, 300, 302]


def test_the_vocabulary_is_a_mapping_that_cannot_be_changed(tok):
    assert all(tok.token_to_id(token) == token_id for token, token_id in tok.vocab.items())
    assert set(tok.vocab.values()) == {i for i in range(tok.vocab_size) if tok.id_to_token(i) is not None}
    assert tok.vocab["<s>"] == tok.special_tokens["<s>"]
    with pytest.raises(TypeError):
        tok.vocab["new"] = 1


def test_a_rank_files_vocabulary_has_the_tokens_that_are_text():
    ranks = {bytes([byte]): byte for byte in range(256)} | {"é".encode(): 256}
    tok = Tokenizer(TokenizerSpec(model=RankBPE(ranks)))
    assert tok.vocab == {chr(byte): byte for byte in range(128)} | {"é": 256}
    assert all(tok.token_to_id(token) == token_id for token, token_id in tok.vocab.items())


def test_lists_of_tokens_and_ids(tok):
    ids = tok.encode("<s>abc 日本")
    tokens = [tok.id_to_token(token_id) for token_id in ids]
    assert tok.id_to_token(ids) == tok.id_to_token(np.array(ids)) == tokens
    assert tok.token_to_id(tokens) == ids
    assert tok.token_to_id(["no such token", *tokens[:1]]) == [None, ids[0]]
    assert tok.id_to_token(np.int32(ids[0])) == tokens[0]
    assert tok.id_to_token([]) == tok.token_to_id(()) == []


def test_names_that_are_no_text(small):
    assert small().token_to_id("\ud800") is None
    ranks = {bytes([byte]): byte for byte in range(256)}
    assert Tokenizer.from_spec(TokenizerSpec(model=RankBPE(ranks))).token_to_id("\ud800") is None
