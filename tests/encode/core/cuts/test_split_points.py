"""Split points cut pieces as often as is safe, and never where a model's ids could change.

That cuts change no ids is also compared in the tests of the models, on every text of theirs.
"""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from tokenweir.encode import _core

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def by_merges(letters, *merges, more=(), **options):
    """A model of letters and merges ("a+b" makes "ab")."""
    pairs = [tuple(merge.split("+")) for merge in merges]
    tokens = dict.fromkeys([*letters, *more, *(left + right for left, right in pairs)])
    vocabulary = _core.Vocabulary.plain({token: i for i, token in enumerate(tokens)})
    return _core.CharacterBpe(vocabulary, pairs, **options)


def by_scores(pieces, byte_fallback=False, types=None):
    """A model of pieces, the first of the highest score; `types` of those that are not normal."""
    names = ["<unk>", *pieces, *(BYTES if byte_fallback else [])]
    kinds = {"<unk>": UNKNOWN, **dict.fromkeys(BYTES, BYTE), **(types or {})}
    scores = [-float(i) for i in range(len(names))]
    return _core.SentencePieceBpe(
        names, np.array(scores, float), bytes(kinds.get(n, NORMAL) for n in names), 0, byte_fallback
    )


def assert_cut(model, *parts):
    """The text that the parts make is cut into them and into nothing smaller; the ids are those of the whole."""
    found = model.encode_cut("".join(parts))
    assert found == [model.encode(part)[0] for part in parts]
    assert [token_id for part in found for token_id in part] == model.encode("".join(parts))[0]


@pytest.mark.parametrize(
    "model",
    [
        by_merges("▁ab日😀", "▁+a", "a+b", "▁a+b", "日+😀"),
        by_scores([*"▁ab日😀", "▁a", "ab", "▁ab", "日😀"]),
    ],
    ids=["merges", "scores"],
)
def test_between_characters_that_stand_side_by_side_in_no_token(model):
    assert_cut(model, "▁ab", "▁ab", "b", "▁", "▁a", "a", "日😀", "日", "日", "a", "😀", "😀", "b")
    assert_cut(model, "ab")
    assert model.encode_cut("") == []


def test_a_token_that_no_merge_makes_joins_nothing():
    assert_cut(by_merges("abc", "a+b", more=["bc"]), "ab", "c")


def test_unknown_characters_of_merges():
    for options in ({}, {"more": ["?"], "unk_token": "?"}, {"more": ["?"], "unk_token": "?", "fuse_unk": True}):
        assert_cut(by_merges("ab", "a+b", **options), "b", "b", "axxb", "a")
    everything = {"more": BYTES, "byte_fallback": True}
    assert_cut(by_merges("ab", "a+b", **everything), "b", "a", "x", "é", "ab", "a")
    assert_cut(by_merges("ab", "a+b", "<0xC3>+<0xA9>", **everything), "b", "aéb", "a")
    assert_cut(by_merges("ab", "a+b", more=BYTES[1:], byte_fallback=True), "b", "aéb", "a")
    assert_cut(by_merges("\0ab", "a+b", more=BYTES[1:], byte_fallback=True), "b", "a", "é", "\0", "b", "a")


def test_unknown_characters_of_scores():
    assert_cut(by_scores([*"ab", "ab"]), "b", "b", "axxb", "a")
    assert_cut(by_scores([*"ab", "ab"], byte_fallback=True), "b", "b", "a", "x", "x", "b", "a")
    assert_cut(by_scores(["ab", "cd"], byte_fallback=True), "b", "ab", "cd", "d")


def test_user_defined_pieces_stay_whole():
    model = by_scores([*"abc", "bc", "ab"], types={"bc": USER_DEFINED, "ab": NORMAL})
    assert_cut(model, "abc", "c", "abc", "ab")


def test_pieces_that_come_apart_again():
    for splits in (["ab"], ["ab", "bc"]):
        assert_cut(by_scores([*"abc", *splits, "abc"], types={"abc": UNUSED}), "abc", "c", "b", "a", "a")


@pytest.mark.parametrize(
    "options",
    [{"continuing_subword_prefix": "#"}, {"end_of_word_suffix": "#"}, {"ignore_merges": True}],
    ids=lambda options: next(iter(options)),
)
def test_none_where_a_symbol_depends_on_its_place(options):
    assert_cut(by_merges(["a", "b", "#a", "#b", "a#", "b#"], **options), "abba")


def test_control_tokens_join_no_less_than_others():
    control = by_merges("ab", "a+b", control=[2])
    assert_cut(control, "b", "ab", "a")
    assert control.encode_cut("bab", True) == [[1], [0, 1]]
    unknown = by_merges("ab", more=["?"], unk_token="?", fuse_unk=True, control=[1])
    assert unknown.encode_cut("abbaa", True) == [[0, 2, 0], [0]]


def test_most_places_of_random_text_are_safe():
    """Thousands of tokens share the field of bits; few cuts are missed for that."""
    pick = random.Random(1)
    letters = [chr(c) for c in range(0x4E00, 0x4E00 + 3000)]
    pairs = {(pick.choice(letters), pick.choice(letters)) for _ in range(5000)}
    model = by_merges(letters, *(left + "+" + right for left, right in pairs))
    text = "".join(pick.choices(letters, k=50_000))
    safe = sum(pair not in pairs for pair in pairwise(text))
    parts = model.encode_cut(text)
    assert [token_id for part in parts for token_id in part] == model.encode(text)[0]
    assert 0.9 * safe < len(parts) - 1 <= safe
