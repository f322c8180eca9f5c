"""Metaspace: another sign for the space, before each word or only before the text's first."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from tokenweir.encode.components.pre_tokenize import pre_tokenizer_core
from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.spec import Metaspace

cases = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "components" / "pre_tokenizers.py")))

MARK = "\u2581"
TEXTS = [" a", "a b", "  a  b ", "a", MARK, f"{MARK}a {MARK}b", "\u00e9 \u00e9", "\u4e2d", "\ta b", "_a b_", " "]


def metaspace(scheme="always", **options):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": True} | options


def in_a_row(*parts):
    return {"type": "Sequence", "pretokenizers": parts}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("scheme", ["always", "first", "never"])
@pytest.mark.parametrize("replacement", [MARK, "_", " ", "\u00e9", "\U0001f600", "]", "^"])
def test_every_option(scheme, split, replacement, text):
    cases.same(metaspace(scheme, split=split, replacement=replacement), text)


def test_pieces_by_hand():
    assert cases.same(metaspace(), "a b") == [f"{MARK}a", f"{MARK}b"]
    assert cases.same(metaspace("never"), "a  b") == ["a", MARK, f"{MARK}b"]
    assert cases.same(metaspace(split=False), "a b") == [f"{MARK}a{MARK}b"]
    assert cases.same(metaspace(), " a") == [f"{MARK}a"]


def test_words_have_their_own_prefix():
    words = {"type": "WhitespaceSplit"}
    assert cases.same(in_a_row(words, metaspace()), "\u00e9a  b") == [f"{MARK}\u00e9a", f"{MARK}b"]
    assert cases.same(in_a_row(words, metaspace("first")), "\u00e9a  b") == [f"{MARK}\u00e9a", "b"]
    assert cases.same(in_a_row(words, metaspace("first")), " \u00e9a  b") == ["\u00e9a", "b"]


def test_first_is_whatever_stands_for_the_first_character():
    # The space that ByteLevel puts in front, the letter after it, and the parts that it spells a character in.
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}
    letters = {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": False}
    spelled = cases.same(in_a_row(byte_level, letters, metaspace("first")), "\u00e9\u00e9")
    assert spelled == [f"{MARK}\u0120", f"{MARK}\u00c3", f"{MARK}\u00a9", "\u00c3", "\u00a9"]


def test_what_old_files_say():
    assert cases.same(metaspace("never", add_prefix_space=False, str_rep="x"), "a b") == ["a", f"{MARK}b"]
    assert cases.same(metaspace("first", add_prefix_space=True), "a b") == [f"{MARK}a", f"{MARK}b"]
    for scheme in ("always", "first"):
        with pytest.raises(Exception, match="add_prefix_space does not match declared prepend_scheme"):
            cases.huggingface(metaspace(scheme, add_prefix_space=False))
        with pytest.raises(TokenizerFileError) as error:
            cases.ours(metaspace(scheme, add_prefix_space=False))
        expected = f"pre_tokenizer: Metaspace with add_prefix_space = False and prepend_scheme = {scheme!r}"
        assert str(error.value) == expected


@pytest.mark.parametrize("replacement", ["", "ab"])
def test_the_replacement_is_one_character(replacement):
    with pytest.raises(TokenizerFileError, match=f"Metaspace's replacement is '{replacement}', not one character"):
        pre_tokenizer_core(Metaspace(replacement=replacement), takes_bytes=False)


@pytest.mark.parametrize(
    "text", ["a", " a", "<x>a", "a<x>a", "<n>a b", "a<n> a", "e\u0301 a", "<x>e\u0301<n>a", "\u212b b"]
)
@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("scheme", ["always", "first", "never"])
def test_whole_texts(both, scheme, form, text):
    """Beside added tokens, and after a normalizer."""
    ours, theirs = both(
        vocab={letter: 300 + i for i, letter in enumerate(f"{MARK} \u0301\u212b")},
        normalizer={"type": "NFC"} if form else None,
        pre_tokenizer=metaspace(scheme),
        decoder=None,
        added=[{"content": "<x>"}, {"content": "<n>", "normalized": True}],
    )
    found, expected = ours.encode_with_offsets(text), theirs.encode(text)
    assert (found.ids, found.offsets) == (expected.ids, expected.offsets)
    assert ours.encode(text) == expected.ids
