"""Reading a rank file."""

from __future__ import annotations

import base64
import re

import pytest
import tiktoken as reference

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import tiktoken
from tokenweir.encode.formats.known_rank_files import recognise
from tokenweir.encode.spec import AddedToken
from tokenweir.encode.tokenizer import Tokenizer

PATTERN = r"\p{L}+|\p{N}{1,3}+|\s"
BYTES = {bytes([byte]): byte for byte in range(256)}
RANKS = BYTES | {b"ab": 256, b"bc": 257, b"abc": 258, b"12": 259, b"123": 260}


def rank_file(ranks):
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks.items())


def load(ranks, **options):
    return Tokenizer.from_bytes(rank_file(ranks), "tiktoken", pattern=PATTERN, **options)


def test_ids_are_tiktokens():
    special = {"<|end|>": 300, "<s>": 261}  # none begins another: tiktoken tries them in no certain order
    ours = load(RANKS, special_tokens=special)
    theirs = reference.Encoding("x", pat_str=PATTERN, mergeable_ranks=RANKS, special_tokens=special)
    for text in ("abc abcd bcab 1234", "a<|end|>b", "<|end |>", "!abc!", "12ab <s><|end|>"):
        ids = ours.encode(text)
        assert ids == theirs.encode(text, allowed_special="all")
        assert ours.encode(text, parse_special=False) == theirs.encode_ordinary(text)
        assert ours.decode(ids, skip_special_tokens=False) == theirs.decode(ids)
    assert ours.vocab_size == 301
    assert ours.decode([261, 299, 300], skip_special_tokens=False) == "<s><|end|>"


def test_text_that_the_pattern_leaves_over_is_dropped():
    assert load(RANKS).encode("!?ab!") == [256]


def test_the_spec():
    spec = tiktoken.read(rank_file(RANKS), pattern=PATTERN, special_tokens={"<|end|>": 300})
    assert spec.model.ranks == RANKS
    assert spec.added_tokens == (AddedToken("<|end|>", id=300, special=True),)
    assert (spec.pre_tokenizer.dialect, spec.pre_tokenizer.unmatched) == ("fancy-regex", "drop")
    assert spec.source == "tiktoken rank file"


def test_line_ends_and_empty_lines():
    data = rank_file(RANKS)
    assert tiktoken.read(b"\n" + data.replace(b"\n", b"\r\n\n"), pattern=PATTERN).model.ranks == RANKS


def test_an_empty_token_comes_from_ids_only():
    """Whisper's multilingual.tiktoken ends with the line `= 50256`."""
    ranks = {**RANKS, b"": 261}
    data = rank_file(RANKS) + b"= 261\n"
    ours = Tokenizer.from_bytes(data, "tiktoken", pattern=PATTERN)
    theirs = reference.Encoding("x", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    for text in ("abc abcd bcab 1234", "", "!abc!"):
        assert ours.encode(text) == theirs.encode(text)
    assert ours.decode([261, 97, 261]) == theirs.decode([261, 97, 261]) == "a"
    assert ours.token_bytes(261) == b""
    with pytest.raises(TokenizerFileError, match=r"^line 2: token b'' or rank 2 is there already"):
        tiktoken.read(b"= 1\n= 2\n", pattern=PATTERN)


def test_openais_own_files_are_known_by_name():
    spec = tiktoken.read(rank_file(RANKS), recognised=recognise("cl100k_base.tiktoken"))
    assert {token.content: token.id for token in spec.added_tokens} == {
        "<|endoftext|>": 100257,
        "<|fim_prefix|>": 100258,
        "<|fim_middle|>": 100259,
        "<|fim_suffix|>": 100260,
        "<|endofprompt|>": 100276,
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pattern": 5}, "pattern must be str, not int"),
        ({"special_tokens": 5}, "special_tokens must be a mapping of texts to ids, not int"),
        ({"special_tokens": {"<s>": "1"}}, "special_tokens must map texts to ids, and has '<s>': '1'"),
        ({"special_tokens": {1: 1}}, "special_tokens must map texts to ids, and has 1: 1"),
    ],
)
def test_what_is_given_of_a_wrong_type(tmp_path, given, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        Tokenizer.from_bytes(b"IQ== 0", "tiktoken", **given)
    with pytest.raises(TypeError, match=f"^{message}$"):
        Tokenizer.from_file(tmp_path, **given)


@pytest.mark.parametrize(
    ("data", "message"), [("a/file", "not str; from_file() takes a path"), (5, "not int"), (None, "not NoneType")]
)
def test_data_that_is_no_bytes(data, message):
    with pytest.raises(TypeError, match=f"^data must be bytes, {re.escape(message)}$"):
        Tokenizer.from_bytes(data, "tiktoken")


def test_an_unknown_file_says_neither_pattern_nor_special_tokens():
    with pytest.raises(
        UnsupportedTokenizerError,
        match=r"^a rank file 'x.tiktoken' says nothing of its pattern and special tokens: give pattern= and "
        r"special_tokens=$",
    ):
        tiktoken.read(rank_file(RANKS), name="x.tiktoken")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"^no ranks in it$"),
        (b"\n\n", r"^no ranks in it$"),
        (b"YQ== 0\nYg==\n", r"^line 2 is not a base64 token and a rank: b'Yg=='$"),
        (b"YQ== 0 1\n", r"^line 1 is not a base64 token and a rank: b'YQ== 0 1'$"),
        (b"YQ= 0\n", r"^line 1 is not a base64 token and a rank: b'YQ= 0'$"),
        (b"Y*== 0\n", r"^line 1 is not a base64 token and a rank: b'Y\*== 0'$"),
        (b"YQ== zero\n", r"^line 1 is not a base64 token and a rank: b'YQ== zero'$"),
        (b"YQ== " + b"9" * 5000, r"^line 1 is not a base64 token and a rank: b'YQ== 9+'$"),
        (b"YQ== -1\n", r"^line 1: token b'a' or rank -1 is there already, or the rank is negative$"),
        (b"YQ== 0\nYQ== 1\n", r"^line 2: token b'a' or rank 1 is there already, or the rank is negative$"),
        (b"YQ== 0\nYg== 0\n", r"^line 2: token b'b' or rank 0 is there already, or the rank is negative$"),
        (b"\xff\xfe 0\n", r"^line 1 is not a base64 token and a rank: b'\\xff\\xfe 0'$"),
        (b"\x00" * 100, r"^line 1 is not a base64 token and a rank: "),
    ],
)
def test_what_is_not_a_rank_file(data, message):
    with pytest.raises(TokenizerFileError, match=message):
        tiktoken.read(data, pattern=PATTERN)


@pytest.mark.parametrize("rank", [2**20 - 1, 2**31, 2**64, 10**30])
def test_ranks_that_do_not_fit(rank):
    with pytest.raises(UnsupportedTokenizerError, match=r"ids from 0 to 1048574 fit$"):
        load(BYTES | {b"ab": rank})
    with pytest.raises(UnsupportedTokenizerError, match=rf"^{rank + 1} ids; at most 1048575 fit$"):
        load(BYTES, special_tokens={"<s>": rank})


def test_the_largest_rank_that_fits():
    tok = load(BYTES | {b"ab": 2**20 - 2})
    assert tok.encode("ab b") == [2**20 - 2, 32, 98]
    assert tok.decode([2**20 - 3, 2**20 - 2]) == "ab"
