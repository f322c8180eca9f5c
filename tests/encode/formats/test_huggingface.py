"""Reading a tokenizer.json: every spelling that occurs, and what is refused, with the words it is refused in."""

from __future__ import annotations

import json
import random
import re

import pytest
import tokenizers
from case_tables import cases
from full_run import share

from tokenweir.encode.decode import DecodeStream
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.formats import huggingface
from tokenweir.encode.spec import NFC, AddedToken, ByteLevel, NormalizerSequence
from tokenweir.encode.tokenizer import Tokenizer

CASES = cases(__file__)

SPLIT = {"type": "Split", "pattern": {"Regex": "a"}, "behavior": "Isolated", "invert": False}


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


MODELS = CASES["models"]


@pytest.mark.parametrize("name", MODELS)
def test_old_files_do_not_say_the_models_type(name):
    """The library finds the same, with the same ids."""
    kind, fields = name.split()[0], MODELS[name]
    spec = read({"model": fields})
    assert (
        spec.model == read({"model": {"type": kind, **fields}}).model == read({"model": {**fields, "type": kind}}).model
    )
    assert type(spec.model).__name__ == kind
    theirs = tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "model": fields}))
    assert type(theirs.model).__name__ == kind
    vocab = spec.model.vocab
    pairs = vocab.items() if kind != "Unigram" else ((token, i) for i, (token, _) in enumerate(vocab))
    assert dict(pairs) == theirs.get_vocab()


def test_an_old_byte_level_file(tokenizer_json):
    source = tokenizer_json()
    expected = load(source).encode("abc 日本")
    del source["model"]["type"]
    assert load(source).encode("abc 日本") == expected


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        ({"vocab": {"a": 0}, "unk_token": "a"}, UnsupportedTokenizerError, r"^model: 'WordLevel'$"),
        ({}, TokenizerFileError, r"^model: has no type, and not the fields of any$"),
        ({"vocab": {}}, TokenizerFileError, r"^model: has no type, and not the fields of any$"),
        ({"vocab": [["a"]]}, TokenizerFileError, r"^model.vocab\[0\]: Expected `array` of length 2$"),
        ({"merges": [], "vocab": []}, TokenizerFileError, r"^model.vocab: Expected `object`, got `array`$"),
        ({"type": None, "merges": []}, TokenizerFileError, r"^model.type: Expected `str`$"),
    ],
)
def test_what_no_type_can_be_told_of(model, error, message):
    with pytest.raises(error, match=message):
        read({"model": model})


def test_a_key_twice_has_the_later_value_as_in_the_library():
    vocab = '"vocab": {"[UNK]": 0, "a": 1, "a": 2}, "unk_token": "a", "unk_token": "[UNK]"'
    more = '"continuing_subword_prefix": "##", "continuing_subword_prefix": "@", "max_input_chars_per_word": 100'
    normalizers = '"normalizer": {"type": "NFC"}, "normalizer": {"type": "Lowercase"}'
    text = f'{{"version": "1.0", {normalizers}, "model": {{"type": "WordPiece", {vocab}, {more}}}}}'
    spec = huggingface.read(text.encode())
    theirs = tokenizers.Tokenizer.from_str(text)
    assert spec.model.vocab == theirs.get_vocab() == {"[UNK]": 0, "a": 2}
    assert (spec.model.unk_token, spec.model.continuing_subword_prefix) == ("[UNK]", "@")
    assert (theirs.model.unk_token, theirs.model.continuing_subword_prefix) == ("[UNK]", "@")
    assert type(spec.normalizer).__name__ == type(theirs.normalizer).__name__ == "Lowercase"


def test_old_metaspace():
    """`add_prefix_space` says nothing more, unless it contradicts `prepend_scheme`, and `str_rep` nothing at all."""
    old = {"type": "Metaspace", "replacement": "\u2581", "str_rep": "\u2581", "add_prefix_space": True}
    for scheme in ({}, {"prepend_scheme": "first"}, {"prepend_scheme": "never"}):
        source = {"version": "1.0", "model": MODELS["BPE"], "pre_tokenizer": {**old, **scheme}}
        found = read(source).pre_tokenizer
        theirs = tokenizers.Tokenizer.from_str(json.dumps(source)).pre_tokenizer
        assert (found.prepend_scheme, found.split) == (theirs.prepend_scheme, theirs.split)
        source["pre_tokenizer"]["add_prefix_space"] = False
        if scheme == {"prepend_scheme": "never"}:
            assert read(source).pre_tokenizer.prepend_scheme == "never"
            continue
        for place in ("pre_tokenizer", "decoder"):
            with pytest.raises(TokenizerFileError, match=rf"^{place}: add_prefix_space is false and prepend_scheme '"):
                read({"model": MODELS["BPE"], place: source["pre_tokenizer"]})
            with pytest.raises(Exception, match=r"does not match|did not match"):
                tokenizers.Tokenizer.from_str(
                    json.dumps({**source, "pre_tokenizer": None, place: source["pre_tokenizer"]})
                )


def random_number(pick):
    """A JSON number, most with more digits than a double holds."""

    def digits(least, most):
        return "".join(pick.choices("0123456789", k=pick.randint(least, most)))

    if pick.random() < 0.3:
        return repr(-20 * pick.random())
    text = pick.choice(["", "-"]) + pick.choice(["0", "7" + digits(0, 24), "1844674407370955161" + digits(0, 2)])
    if pick.random() < 0.7:
        text += "." + digits(1, 25)
    if pick.random() < 0.4:
        text += pick.choice(["e", "E-", "e+", "e-"]) + str(pick.choice([0, 5, 22, 23, 250, 283]))
    return text


def test_scores_are_the_numbers_that_the_library_reads():
    """In the last bit, too: it does not read the nearest ones."""
    pick = random.Random("numbers")
    numbers = ["0", "-0.0", "1e-99999999999", "0e99999999999", "5e-324", "123e-330"]
    numbers += [number for number in (random_number(pick) for _ in range(share(30_000))) if abs(float(number)) < 1e300]
    vocab = ", ".join(f'["{i} \\\\\\" -1,", {number}]' for i, number in enumerate(numbers))
    for kind in ('"type": "Unigram", ', ""):
        text = f'{{"version": "1.0", "model": {{{kind}"unk_id": 0, "vocab": [{vocab}]}}}}'
        theirs = json.loads(tokenizers.Tokenizer.from_str(text).to_str())["model"]["vocab"]
        assert [list(entry) for entry in huggingface.read(text.encode()).model.vocab] == theirs
    assert sum(float(number) != score for number, (_, score) in zip(numbers, theirs, strict=True)) > share(1800)


@pytest.mark.parametrize(("score", "message"), CASES["scores_that_are_none"])
def test_scores_that_are_none(score, message):
    text = f'{{"model": {{"type": "Unigram", "vocab": [["a", -1], ["b", {score}], ["c", -2]]}}}}'
    with pytest.raises(TokenizerFileError, match=message):
        huggingface.read(text.encode())


def test_what_may_be_missing(tokenizer_json):
    source = tokenizer_json()
    bare = {
        "model": {name: source["model"][name] for name in ("type", "vocab", "merges")},
        **{name: source[name] for name in ("pre_tokenizer", "decoder")},
    }
    assert load(bare).encode("abc 日本") == load(source).encode("abc 日本")


def test_a_null_decoder_where_tokens_are_text():
    assert read({"model": MODELS["WordPiece"], "decoder": None}).decoder is None


OVER_CHARACTERS = {"pre_tokenizer": None, "decoder": {"type": "Fuse"}}
EMPTY_MERGES = [("a", "b"), ("", "a"), ("ab", "c"), ("b", "")]
BEGINS = {"type": "WordPiece", "prefix": "##", "cleanup": True}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
SUBWORDS = {"[UNK]": 0, "a": 1, "##b": 2, "": 3, "ab": 4, "##": 5, "c": 6, "##c": 7}
SCORED = [["<unk>", 0.0], ["▁", -1.0], ["a", -2.0], ["", -30.0], ["ab", -2.5], ["b", -3.0], ["c", -3.0]]


@pytest.mark.parametrize(
    ("model", "components"),
    [
        ({}, {}),
        ({"ignore_merges": True}, {}),
        ({}, {"merges": EMPTY_MERGES}),
        ({}, {"added": [{"content": "", "id": 296, "special": True}, {"content": "<x>", "id": 297}]}),
        ({}, OVER_CHARACTERS),
        ({}, OVER_CHARACTERS | {"decoder": {"type": "BPEDecoder", "suffix": "</w>"}}),
        ({"unk_token": ""}, OVER_CHARACTERS),
        ({"unk_token": ""}, OVER_CHARACTERS | {"merges": EMPTY_MERGES}),
        ({"type": "WordPiece", "vocab": SUBWORDS}, {"pre_tokenizer": {"type": "Whitespace"}, "decoder": BEGINS}),
        (
            {"type": "WordPiece", "vocab": SUBWORDS, "unk_token": "", "continuing_subword_prefix": ""},
            {"decoder": BEGINS},
        ),
        ({"type": "Unigram", "vocab": SCORED, "unk_id": 0}, {"pre_tokenizer": METASPACE, "decoder": METASPACE}),
        ({"type": "Unigram", "vocab": SCORED, "unk_id": 3}, {"pre_tokenizer": METASPACE, "decoder": METASPACE}),
    ],
)
def test_an_empty_token_comes_from_ids_only(tokenizer_json, model, components):
    """Whisper's vocabulary has one, 50256; text becomes it only as an `unk_token`."""
    source = tokenizer_json(vocab={"": 296}, **components)
    if model.get("type"):
        source["model"] = {
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 9,
        } | model
    else:
        source["model"] |= model
    ours, theirs = load(source), tokenizers.Tokenizer.from_str(json.dumps(source))
    empty = theirs.token_to_id("")
    assert (ours.token_to_id(""), ours.id_to_token(empty)) == (empty, "")
    for text in ["abc ab é日本 x <m ca", "", " ", "zz\x00a", "a b c", "aab<x>bb"]:
        encoded, expected = ours.encode_with_offsets(text), theirs.encode(text)
        assert (encoded.ids, encoded.offsets) == (expected.ids, expected.offsets), text
        assert ours.encode(text) == expected.ids
    pick = random.Random(1)
    for _ in range(200):
        ids = [pick.choice([empty, pick.randrange(theirs.get_vocab_size())]) for _ in range(pick.randrange(6))]
        assert ours.decode(ids, skip_special_tokens=False) == theirs.decode(ids, skip_special_tokens=False), ids
        stream = DecodeStream(ours, skip_special_tokens=False)
        stepped = "".join(map(stream.step, ids)) + stream.flush()
        assert stepped == ours.decode(ids, skip_special_tokens=False), ids


def test_random_merging_is_refused(tokenizer_json):
    for dropout, model in ((0.0, {}), (None, {})):
        load(tokenizer_json(model={"dropout": dropout, **model}))
    with pytest.raises(UnsupportedTokenizerError, match="dropout = 0.5"):
        load(tokenizer_json(model={"dropout": 0.5}))


def changed(source, path, value):
    *way, last = path
    place = source
    for key in way:
        place = place[key]
    place[last] = value
    return source


LOWER = {"type": "Lowercase"}


@pytest.mark.parametrize(("path", "value", "message"), CASES["refused_components"])
def test_components_that_are_not_there_are_refused_by_name(tokenizer_json, path, value, message):
    with pytest.raises(UnsupportedTokenizerError, match=message):
        read(changed(tokenizer_json(), path, json.loads(value)))


@pytest.mark.parametrize(("path", "value", "message"), CASES["wrong_types"])
def test_values_of_the_wrong_type_are_told_with_their_place(tokenizer_json, path, value, message):
    with pytest.raises(TokenizerFileError, match=message):
        read(changed(tokenizer_json(), path, json.loads(value)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"^not a tokenizer.json: Input data was truncated$"),
        (b"\x00\xff", r"^not a tokenizer.json: JSON is malformed"),
        (b"[]", r"^the file: Expected `object`, got `array`$"),
        (b"{}", r"^the file: Object missing required field `model`$"),
        (b'{"model": ' + b"[" * 100_000, r"^model: Expected `object`, got `array`$"),
        (b'{"model": {}, "x": ' + b"[" * 100_000, r"^not a tokenizer.json: "),
        (b'{"model": ' + b'{"vocab": ' * 100_000, r"^not a tokenizer.json: "),
        (b'{"model": {"type": "BPE", "vocab": {"\xff": 1}, "merges": []}}', r"^not a tokenizer.json: "),
    ],
)
def test_what_is_not_a_tokenizer_json(data, message):
    with pytest.raises(TokenizerFileError, match=message):
        huggingface.read(data)


@pytest.mark.parametrize(("kind", "component", "field"), CASES["needed_fields"])
def test_fields_without_which_the_library_refuses_a_file(tokenizer_json, kind, component, field):
    sequence = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}[kind]
    less = {name: value for name, value in component.items() if name != field}
    for place, whole, cut in (
        (kind, component, less),
        (f"{kind}.{sequence}[0]", {"type": "Sequence", sequence: [component]}, {"type": "Sequence", sequence: [less]}),
    ):
        read(tokenizer_json(**{kind: whole}))
        with pytest.raises(TokenizerFileError, match=f"^{re.escape(place)}: Object missing required field `{field}`$"):
            read(tokenizer_json(**{kind: cut}))
        with pytest.raises(Exception, match=r"missing field|did not match any variant"):
            tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(**{kind: cut})))
