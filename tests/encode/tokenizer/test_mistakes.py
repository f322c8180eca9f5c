"""Mistakes of callers: the error says what to write instead."""

from __future__ import annotations

import re
from collections import UserDict

import pytest

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.decode.batch import DecodeBatch
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.other_names import WRITE_INSTEAD
from tokenweir.encode.tokenizer import Tokenizer


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda tok: Tokenizer("a/model"),
            "Tokenizer() takes a TokenizerSpec, not str: write Tokenizer.from_file('a/model')",
        ),
        (lambda tok: Tokenizer(None), "Tokenizer() takes a TokenizerSpec, not NoneType"),
        (lambda tok: tok.encode(b"text"), "text must be str, not bytes"),
        (lambda tok: tok.encode(["a"]), "text must be one str, not several: encode_batch() takes those"),
        (lambda tok: tok.encode("a", guarded=[-1]), "guarded must be ascending offsets of characters, from 0 on"),
        (
            lambda tok: tok.encode_batch(["a"], guarded="x"),
            "guarded must be ascending offsets of characters, from 0 on",
        ),
        (lambda tok: tok.token_bytes(None), "a token id is one int, not NoneType"),
        (lambda tok: DecodeStream(tok).step([1, 2]), "a token id is one int, not list"),
        (lambda tok: tok("text"), "a Tokenizer is not called: write tok.encode(text), or tok.encode_batch(texts)"),
        (lambda tok: DecodeStream(tok).feed(None), "ids must be a sequence of int, not NoneType"),
        (lambda tok: DecodeStream(tok, prompt_ids=None), "prompt_ids must be a sequence of int, not NoneType"),
        (lambda tok: DecodeStream("path"), "tokenizer is a str, not a Tokenizer such as Tokenizer.from_file() gives"),
        (
            lambda tok: DecodeStream(tok, skip_special_tokens="no"),
            "skip_special_tokens='no' is neither True nor False",
        ),
        (lambda tok: DecodeBatch(tok, skip_special_tokens=1), "skip_special_tokens=1 is neither True nor False"),
        (lambda tok: DecodeBatch(None), "tokenizer is a NoneType, not a Tokenizer such as Tokenizer.from_file() gives"),
        (lambda tok: tok.count(None), "text must be str, not NoneType"),
        (lambda tok: tok.encode_batch("text"), "texts must be several texts, not one str: write encode_batch([text])"),
        (lambda tok: tok.encode_batch(None), "texts must be several texts, not NoneType"),
        (lambda tok: tok.encode_batch(["a", None]), "texts[1] must be str or bytes, not NoneType"),
        (lambda tok: tok.decode("text"), "decode() takes token ids, not str; encode() takes text"),
        (lambda tok: tok.decode(""), "decode() takes token ids, not str; encode() takes text"),
        (lambda tok: tok.encode_batch({"text": ["a"]}), "texts must be several texts, not dict"),
        (lambda tok: tok.encode_batch(["a"], threads="2"), "'str' object cannot be interpreted as an integer"),
        (lambda tok: tok.encode_batch(["a"], threads=2.5), "'float' object cannot be interpreted as an integer"),
        (
            lambda tok: tok.encode_batch(["a"]).padded(None),
            "pad_id must be int, not None: for a tokenizer without one use any id, such as 0, and the mask",
        ),
        (lambda tok: tok.encode_batch(["a"]).padded(0.5), "'float' object cannot be interpreted as an integer"),
        (lambda tok: tok.encode_batch(["a"]).padded(0, "3"), "'str' object cannot be interpreted as an integer"),
        (lambda tok: tok.encode_batch(["a"])[0:1], "'slice' object cannot be interpreted as an integer"),
        (lambda tok: tok.decode(5), "ids must be a sequence of int, not one int: write [5]"),
        (lambda tok: tok.decode(b"\1"), "decode() takes token ids, not bytes; encode() takes text"),
        (lambda tok: tok.decode({1, 2}), "ids must be a sequence of int, not set"),
        (lambda tok: tok.decode(UserDict(input_ids=[1, 2])), "ids must be a sequence of int, not UserDict"),
        (lambda tok: tok.decode({"input_ids": [1]}), "ids must be a sequence of int, not dict"),
        (lambda tok: tok.decode_bytes(bytearray(b"a")), "ids must be a sequence of int, not bytearray"),
        (lambda tok: tok.decode([1], skip_special_tokens="no"), "skip_special_tokens='no' is neither True nor False"),
        (lambda tok: tok.encode("a", parse_special="no"), "parse_special='no' is neither True nor False"),
        (lambda tok: tok.encode_batch(["a"], parse_special="no"), "parse_special='no' is neither True nor False"),
        (lambda tok: tok.count("a", add_special_tokens="no"), "add_special_tokens='no' is neither True nor False"),
        (lambda tok: tok.encode("a", add_bos="no"), "add_bos='no' is neither True nor False"),
        (lambda tok: tok.id_to_token(["a"]), "ids[0] must be int, not str"),
        (lambda tok: tok.id_to_token([1.0]), "ids[0] must be int, not float"),
        (lambda tok: tok.id_to_token(b"a"), "ids must be a sequence of int, not bytes"),
        (lambda tok: tok.decode_batch([1, 2]), "rows[0]: ids must be a sequence of int, not one int: write [1]"),
        (
            lambda tok: tok.decode_batch([[1], ["a"]]),
            "rows[1]: ids[0] must be int, not str; decode_batch() takes the ids of many texts",
        ),
        (lambda tok: tok.decode(None), "ids must be a sequence of int, not NoneType"),
        (lambda tok: tok.decode([1, 2.5]), "ids[1] must be int, not float"),
        (
            lambda tok: tok.decode([[1], [2]]),
            "ids[0] must be int, not list; decode_batch() takes the ids of many texts",
        ),
        (
            lambda tok: tok.decode(tok.encode_batch(["a", "b"])),
            "decode() takes the ids of one text, not a Ragged; decode_batch() takes those of many",
        ),
        (lambda tok: tok.decode_bytes("text"), "decode() takes token ids, not str; encode() takes text"),
    ],
)
def test_mistakes_are_told_with_what_to_write_instead(tok, call, message):
    with pytest.raises(TypeError) as caught:
        call(tok)
    assert str(caught.value) == message


def test_an_id_that_is_none_is_told_with_its_row(tok):
    with pytest.raises(TokenIdError, match=r"^rows\[1\]: token id -1 is outside the vocabulary"):
        tok.decode_batch([[1], [-1]])


def test_an_option_that_does_not_exist(tok):
    plain = "add_bos, add_eos, add_special_tokens"
    for call, names in (
        (tok.encode, f"{plain}, disallowed_special, parse_special"),
        (tok.count, f"{plain}, disallowed_special, parse_special"),
        (lambda text, **options: tok.encode_batch([text], **options), f"{plain}, disallowed_special, parse_special"),
        (lambda text, **options: tok.affixes(**options), plain),
    ):
        with pytest.raises(TypeError) as caught:
            call("text", special=True)
        assert str(caught.value) == f"unexpected keyword argument 'special': the options of encoding are {names}"


@pytest.mark.parametrize("name", WRITE_INSTEAD)
def test_a_name_of_another_library_is_answered_by_what_to_write(tok, name):
    with pytest.raises(AttributeError, match=rf"^'Tokenizer' object has no attribute '{name}'; write "):
        getattr(tok, name)


def test_what_to_write_exists(tok):
    """Every attribute of `tok` in a hint is one."""
    for written in WRITE_INSTEAD.values():
        for attribute in re.findall(r"\btok\.(\w+)", written):
            assert hasattr(tok, attribute)
    assert not hasattr(tok, "nothing")
