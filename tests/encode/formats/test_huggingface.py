"""Reading a tokenizer.json: every spelling that occurs, and what is refused, with the words it is refused in."""

from __future__ import annotations

import json

import pytest

from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import huggingface
from tokenweir.encode.spec import NFC, AddedToken, ByteLevel, NormalizerSequence
from tokenweir.encode.tokenizer import Tokenizer


def read(source):
    return huggingface.read(json.dumps(source).encode())


def load(source):
    return Tokenizer.from_bytes(json.dumps(source).encode(), "huggingface")


def test_the_components(tokenizer_json):
    spec = read(
        tokenizer_json(
            normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}]},
            added=[{"content": "<m>", "id": 5, "rstrip": True, "special": True}],
            truncation={"max_length": 8},
            padding={"strategy": "BatchLongest"},
        )
    )
    assert spec.normalizer == NormalizerSequence((NFC(),))
    assert spec.decoder == ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=True)
    assert spec.added_tokens == (AddedToken("<m>", id=5, rstrip=True, special=True),)
    assert (spec.truncation, spec.padding) == ({"max_length": 8}, {"strategy": "BatchLongest"})
    assert spec.source == "HuggingFace tokenizer.json"


def test_truncation_and_padding_are_reported_and_not_applied(small):
    options = {"direction": "Right", "strategy": "LongestFirst", "stride": 0}
    assert len(small(truncation={"max_length": 2, **options}).encode("a b c d")) > 2


def test_merges_as_pairs_and_as_strings(tokenizer_json):
    source = tokenizer_json(words=["abc", " b"])
    pairs = load(source)
    source["model"]["merges"] = [" ".join(pair) for pair in source["model"]["merges"]]
    strings = load(source)
    assert strings.encode("abc ab ba b") == pairs.encode("abc ab ba b")
    assert len(pairs.encode("abc b")) == 2


def test_old_files_do_not_say_the_models_type(tokenizer_json):
    source = tokenizer_json()
    expected = load(source).encode("abc 日本")
    del source["model"]["type"]
    assert load(source).encode("abc 日本") == expected


def test_what_may_be_missing(tokenizer_json):
    source = tokenizer_json()
    bare = {
        "model": {name: source["model"][name] for name in ("type", "vocab", "merges")},
        **{name: source[name] for name in ("pre_tokenizer", "decoder")},
    }
    assert load(bare).encode("abc 日本") == load(source).encode("abc 日本")


def changed(source, path, value):
    *way, last = path
    place = source
    for key in way:
        place = place[key]
    place[last] = value
    return source


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["model"], {"type": "WordPiece", "vocab": {}}, r"^a tokenizer.json with a model of type 'WordPiece'$"),
        (["model"], {"type": "Unigram", "vocab": []}, r"^a tokenizer.json with a model of type 'Unigram'$"),
        (["model"], {"vocab": {}}, r"^a tokenizer.json with a model of type 'unknown'$"),
        (["normalizer"], {"type": "Lowercase"}, r"^normalizer: 'Lowercase'$"),
        (
            ["normalizer"],
            {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFKC"}]},
            r"^normalizer.normalizers\[1\]: 'NFKC'$",
        ),
        (["pre_tokenizer"], {"type": "Metaspace"}, r"^pre_tokenizer: 'Metaspace'$"),
        (["post_processor"], {"type": "RobertaProcessing"}, r"^post_processor: 'RobertaProcessing'$"),
        (["decoder"], {"type": "CTC"}, r"^decoder: 'CTC'$"),
        (["decoder"], None, r"^a tokenizer.json without a decoder$"),
    ],
)
def test_components_that_are_not_there_are_refused_by_name(tokenizer_json, path, value, message):
    with pytest.raises(UnsupportedTokenizerError, match=message):
        read(changed(tokenizer_json(), path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["model"], [], r"^the file: Expected `object`, got `array`"),
        (["model", "vocab"], [], r"^vocab: Expected `object`, got `array`"),
        (["model", "vocab", "a"], "x", r"^vocab\[...\]: Expected `int`, got `str`"),
        (["model", "vocab", "a"], 1.5, r"^vocab\[...\]: Expected `int`, got `float`"),
        (["model", "merges"], {}, r"^merges: Expected `array`, got `object`"),
        (["model", "merges", 0], ["a", "b", "c"], r"^merges\[0\]: Expected `array` of length 2"),
        (["model", "merges", 0], 7, r"^merges\[0\]: Expected `str \| array`, got `int`"),
        (["model", "ignore_merges"], 1, r"^ignore_merges: Expected `bool`, got `int`"),
        (["added_tokens"], {}, r"^added_tokens: Expected `array`, got `object`"),
        (["added_tokens"], [{"id": 1}], r"^added_tokens\[0\]: Object missing required field `content`"),
        (
            ["added_tokens"],
            [{"content": "a", "id": "1"}],
            r"^added_tokens\[0\].id: Expected `int \| null`, got `str`",
        ),
        (["pre_tokenizer"], "ByteLevel", r"^pre_tokenizer: Expected `object \| null`, got `str`"),
        (["pre_tokenizer", "use_regex"], None, r"^pre_tokenizer.use_regex: Expected `bool`, got `null`"),
        (["pre_tokenizer"], {"type": "Split"}, r"^pre_tokenizer: Object missing required field `pattern`"),
    ],
)
def test_values_of_the_wrong_type_are_told_with_their_place(tokenizer_json, path, value, message):
    with pytest.raises(TokenizerFileError, match=message):
        read(changed(tokenizer_json(), path, value))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"^not a tokenizer.json: Input data was truncated$"),
        (b"\x00\xff", r"^not a tokenizer.json: JSON is malformed"),
        (b"[]", r"^the file: Expected `object`, got `array`$"),
        (b"{}", r"^the file: Object missing required field `model`$"),
        (b'{"model": ' + b"[" * 100_000, r"^not a tokenizer.json: "),
        (b'{"model": ' + b'{"vocab": ' * 100_000, r"^not a tokenizer.json: "),
        (b'{"model": {"type": "BPE", "vocab": {"\xff": 1}}}', r"^not a tokenizer.json: "),
    ],
)
def test_what_is_not_a_tokenizer_json(data, message):
    with pytest.raises(TokenizerFileError, match=message):
        huggingface.read(data)
