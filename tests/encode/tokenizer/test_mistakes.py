"""Mistakes of callers: the error says what to write instead."""

from __future__ import annotations

import re
from collections import UserDict

import pytest
from case_tables import cases

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.decode.batch import DecodeBatch
from tokenweir.encode.errors import TokenIdError
from tokenweir.encode.other_names import WRITE_INSTEAD
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)


@pytest.mark.parametrize(("call", "message"), CASES["calls"])
def test_mistakes_are_told_with_what_to_write_instead(tok, call, message):
    names = {"tok": tok, "Tokenizer": Tokenizer, "DecodeStream": DecodeStream, "DecodeBatch": DecodeBatch}
    with pytest.raises(TypeError) as caught:
        eval(call, names | {"UserDict": UserDict})
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
