"""The core's own reading of parts of a tokenizer.json, against Python's JSON."""

from __future__ import annotations

import json
import pickle
import random
from base64 import b64encode

import pytest
from case_tables import cases
from hypothesis import given
from hypothesis import strategies as st

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import tiktoken

CASES = cases(__file__)

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
LAYOUTS = st.sampled_from([{}, {"indent": 1}, {"ensure_ascii": False}, {"separators": (",", ":")}])
BAD_TEXT = CASES["bad"]


def written(value, layout):
    return memoryview(json.dumps(value, **layout).encode())


@given(st.dictionaries(TEXT.filter(bool), st.integers(0, 1 << 19), min_size=1), LAYOUTS)
def test_vocabularies(tokens, layout):
    tokens = {name: id for id, name in {id: name for name, id in tokens.items()}.items()}  # no id twice
    ids = _core.TokenIds.from_json(written(tokens, layout))
    assert ids is not None
    assert ids == tokens == dict(ids)
    assert len(ids) == len(tokens)
    assert list(ids.items()) == sorted(tokens.items(), key=lambda item: item[1])
    assert all(ids[name] == ids.get(name) == tokens[name] for name in tokens)
    assert ids.get("not there") is None
    assert ids.get("not there", 7) == 7
    assert "not there" not in ids
    assert 5 not in ids
    with pytest.raises(KeyError, match="not there"):
        ids["not there"]
    assert pickle.loads(pickle.dumps(ids)) == ids


@pytest.mark.parametrize("name", BAD_TEXT)
def test_bad_text(name):
    assert _core.TokenIds.from_json(memoryview(f"{{{name}:1}}".encode())) is None
    assert _core.Merges.from_json(memoryview(f'[["a",{name}]]'.encode())) is None
    assert _core.scored_pieces(memoryview(f"[[{name},1.0]]".encode())) is None


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xe4\xbd", b"\xf4\x90\x80\x80"])
def test_bytes_that_are_not_utf8(bad):
    assert _core.TokenIds.from_json(memoryview(b'{"%b":1}' % bad)) is None


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"a":1', '{"a":1,}', '{"a":1}x', '{"a":01}', '{"a":1.0}', '{"a":-}', '{"a":"1"}', '{"a" 1}',
     '{"a":1,"a":2}', '{"a":9999999999999999999}', '{"a":1,"b":2,"a":3}'],
)  # fmt: skip
def test_other_vocabularies(text):
    assert _core.TokenIds.from_json(memoryview(text.encode())) is None


def test_ids_that_contradict_themselves():
    with pytest.raises(TokenizerFileError, match="token id 1 is given twice"):
        _core.TokenIds.from_json(memoryview(b'{"a":1,"b":1}'))
    with pytest.raises(UnsupportedTokenizerError, match="token id -1; ids from 0 to 1048574 fit"):
        _core.TokenIds.from_json(memoryview(b'{"a":-1}'))


@given(st.lists(st.tuples(TEXT, TEXT)), LAYOUTS)
def test_merges(pairs, layout):
    merges = _core.Merges.from_json(written(pairs, layout))
    assert merges == pairs
    assert len(merges) == len(pairs)
    assert pickle.loads(pickle.dumps(merges)) == pairs
    assert _core.Merges(pairs) == pairs
    spaced = [(left, right) for left, right in pairs if " " not in left + right and not left.startswith("#version")]
    lines = ["#version: 0.2", *(f"{left} {right}" for left, right in spaced)]
    assert _core.Merges.from_json(written(lines, layout)) == spaced == _core.Merges(lines)


@pytest.mark.parametrize("text", ["", "{}", "[", '["a b"', '["a b",]', '["a b"]x', '["ab"]', '["a b c"]', '[["a"]]',
                                  '[["a","b","c"]]', '[["a" "b"]]', "[1]", "[null]"])  # fmt: skip
def test_other_merges(text):
    assert _core.Merges.from_json(memoryview(text.encode())) is None


def test_rank_files():
    pick = random.Random(3)
    tokens = list({pick.randbytes(pick.randint(1, 9)) for _ in range(2_000)})
    ranks = dict(zip(tokens, pick.sample(range(5_000), len(tokens)), strict=True))
    lines = [b"%b %d" % (b64encode(token), rank) for token, rank in ranks.items()]
    assert _core.RankIds.read(b"\n".join(lines)) == _core.RankIds.read(b"\n".join(lines) + b"\n") == ranks
    unusual = b"\r\n".join([b"", *lines])  # which the core leaves to Python
    assert _core.RankIds.read(unusual) is None
    assert tiktoken.read(unusual, pattern=".").model.ranks == ranks


@pytest.mark.parametrize("line", [b"YQ", b"YQ=", b"YQ===", b"YR== 1", b"YQ==1", b"YQ==  1", b" YQ== 1", b"YQ== 1 ",
                                  b"YQ== -1", b"YQ== x", b"=== 1", b" 1", b"YQ== 1\n\n", b"YQ== 1\nYQ== 2", b"",
                                  b"YQ== 1\nYg== 1", b"Y=Q= 1", b"YQ== 9999999999999999999"])  # fmt: skip
def test_other_rank_files(line):
    assert _core.RankIds.read(line) is None
