"""Lookahead of any length, the character before, and empty matches: the same pieces as both engines find."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from full_run import share
from tokenizers import Regex, pre_tokenizers

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern.compile import build
from tokenweir.encode.reference import find_pieces

GROUPS_OF_THREE = {
    "Tiny Aya": r"\d{1,3}(?=(?:\d{3})*\b)",
    "SuperBPE": r"(?=(\d{3})+(?!\d))",
    "from the right": r"[0-9]{3}(?=(?:[0-9]{3})*(?![0-9]))|[0-9]{1,2}",
    "line ends": r"(?:\r?\n)+(?!\r?\n)",
}


def core_of(automaton):
    return _core.PreTokenizer([_core.Split(automaton.in_core())])


def check(pattern, texts):
    """Assert that the plain walk and the core find HuggingFace's pieces."""
    automaton = build(pattern, "oniguruma")
    core, huggingface = core_of(automaton), pre_tokenizers.Split(Regex(pattern), "isolated")
    for text in texts:
        expected = [span for _, span in huggingface.pre_tokenize_str(text)]
        assert [(start, end) for start, end, _ in find_pieces(automaton, text)] == expected, (pattern, text)
        assert list(map(tuple, core.split(text).tolist())) == expected, (pattern, text)


@pytest.mark.parametrize("name", GROUPS_OF_THREE)
def test_real_patterns(name):
    pick = random.Random(0)
    texts = ["".join(text) for n in range(1, 5) for text in itertools.product("1\n\ra ", repeat=n)]
    letters = [*"12314\u0663a_ \n", "\r\n", *".\u00b2\u200d\u4e2d\U0001f600"]
    texts += ["".join(pick.choice(letters) * pick.choice([1, 1, 2, 5]) for _ in range(12)) for _ in range(share(6000))]
    check(GROUPS_OF_THREE[name], texts)


def test_numbers_are_cut_from_their_ends():
    automaton = build(GROUPS_OF_THREE["Tiny Aya"], "oniguruma")
    assert [(b, e) for b, e, _ in find_pieces(automaton, "1234567 12a")] == [(0, 1), (1, 4), (4, 7), (7, 11)]
    assert not automaton.sync.any()


@pytest.mark.parametrize("pattern", ["", "a*", r"\s*|a", "(?:a|)", r"(?!\S)", "$", "a||b", "(?=a)", r"\b", "^"])
def test_an_empty_match_parts_what_is_left_over(pattern):
    check(pattern, ["".join(text) for n in range(1, 6) for text in itertools.product("ab \n", repeat=n)])


@pytest.mark.parametrize("behavior", ["removed", "merged_with_previous", "merged_with_next", "contiguous"])
@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("pattern", ["a*", r"\s*$", "(?=a)", "a*b?", "b*(?=a)"])
def test_empty_matches_behave(pattern, behavior, invert):
    automaton = build(pattern, "oniguruma")
    name = "".join(word.capitalize() for word in behavior.split("_"))
    core = _core.PreTokenizer([_core.Split(automaton.in_core(), name, invert)])
    huggingface = pre_tokenizers.Split(Regex(pattern), behavior, invert)
    for text in ("".join(text) for n in range(1, 6) for text in itertools.product("ab \n", repeat=n)):
        expected = [span for _, span in huggingface.pre_tokenize_str(text)]
        assert list(map(tuple, core.split(text).tolist())) == expected, text


def test_long_texts_take_linear_time():
    for pattern, text in itertools.product(
        GROUPS_OF_THREE.values(), ["1" * 1_000_000 + "a", "\r\n" * 500_000, "a" * 999_999]
    ):
        pieces = core_of(build(pattern, "oniguruma")).split(text)
        assert pieces[0, 0] == 0 and pieces[-1, 1] == len(text)
        assert (pieces[1:, 0] == pieces[:-1, 1]).all()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, np.zeros(0, np.uint8), "^an automaton's context has the wrong size$"),
        (0, np.full(5, 200, np.uint8), "^an automaton's context has the wrong size$"),
        (2, np.zeros(1, np.uint8), "^an automaton's context has the wrong size$"),
        (1, 0xFFFF, "^an automaton's context leads outside itself$"),
        (2, 0xFF, "^an automaton's context has a symbol that is out of range$"),
    ],
)
def test_the_core_trusts_no_context(place, value, message):
    automaton = build(GROUPS_OF_THREE["Tiny Aya"], "oniguruma")
    context = [automaton.context.behind, automaton.context.transitions, automaton.context.symbols]
    context[place] = value if isinstance(value, np.ndarray) else np.full_like(context[place], value)
    tables = automaton.transitions, automaton.class_index, automaton.class_pages, automaton.n_classes, automaton.sync
    with pytest.raises(TokenizerFileError, match=message):
        _core.CompiledPattern(*tables[:4], tables[4].astype(np.uint8), tuple(context))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"a(?=[ab]*a[ab]{18}b)", "its lookaheads need"),
        ("a(?=" + "|".join(f"(?=.{{{n}}}b)a" for n in range(2, 15)) + ")", "its lookaheads need"),
        ("(?=(?:(?:(?:a{1,9}){1,9}){1,9}){1,9}b)", "more than 8,192"),
    ],
)
def test_a_hostile_lookahead_is_refused_for_the_work_it_would_be(pattern, message):
    with pytest.raises(UnsupportedTokenizerError, match=message):
        build(pattern, "oniguruma")


@pytest.mark.parametrize(
    "pattern", [r"\s+x|\s", r"(?:\s{7})+x", r"\s*a\s*b|\s|a", r"\s*\n|\s+", r"(?:ab)+c|a", r"(?:\s\s)+$"]
)
def test_a_search_that_fails_late_is_followed_exactly(pattern):
    pick = random.Random(3)
    automaton = build(pattern, "oniguruma")
    core = core_of(automaton)
    for _ in range(150):
        runs = (pick.choice([" ", "ab", "a", "x", "\n", "c"]) * pick.choice([1, 2, 70, 71, 150]) for _ in range(8))
        text = "".join(runs)
        expected = [[start, end] for start, end, _ in find_pieces(automaton, text)]
        assert core.split(text).tolist() == expected, text
