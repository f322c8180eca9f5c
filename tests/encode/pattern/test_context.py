"""Lookahead of any length, the character before, and empty matches: the same pieces as both engines find."""

from __future__ import annotations

import hashlib
import itertools
import random

import msgspec
import numpy as np
import pytest
import tiktoken
from full_run import share
from tokenizers import Regex, pre_tokenizers

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError, UnsupportedTokenizerError
from tokenweir.encode.pattern import Automaton
from tokenweir.encode.pattern.automaton import _MAGIC
from tokenweir.encode.pattern.compile import build
from tokenweir.encode.reference import find_pieces

GROUPS_OF_THREE = {
    "Tiny Aya": r"\d{1,3}(?=(?:\d{3})*\b)",
    "SuperBPE": r"(?=(\d{3})+(?!\d))",
    "from the right": r"[0-9]{3}(?=(?:[0-9]{3})*(?![0-9]))|[0-9]{1,2}",
    "line ends": r"(?:\r?\n)+(?!\r?\n)",
}
LETTERS = "ab 1\n"
SETS = ["a", "b", " ", r"\n", "1", ".", "[ab]", "[^a]", r"[\s1]", r"\s", r"\S", r"\d", r"\w", r"\W", r"\p{L}", "(?i:b)"]
QUANTIFIERS = ["", "", "", "", "?", "*", "+", "??", "*?", "+?", "++", "*+", "?+", "{2}", "{1,2}", "{2,3}"]
PLACES = [r"\b", r"\B", "^", "$", r"\A", r"\z", "(?<=a)", "(?<!a)", r"(?<=[\s1])", r"(?<!\w)", "(?<=a|b)", "(?<![^b])"]


def random_pattern(pick, depth=3):
    """A pattern with lookaheads of any length and conditions on the character before."""

    def part():
        kind = pick.random()
        if depth == 0 or kind < 0.5:
            return pick.choice(SETS) + pick.choice(QUANTIFIERS)
        if kind < 0.75:
            return pick.choice(["(?:", "("]) + random_pattern(pick, depth - 1) + ")" + pick.choice(QUANTIFIERS)
        if kind < 0.9:
            return pick.choice(["(?=", "(?!"]) + random_pattern(pick, depth - 1) + ")"
        return pick.choice(PLACES)

    branches = ["".join(part() for _ in range(pick.choice([1, 1, 2, 3]))) for _ in range(pick.choice([1, 1, 2]))]
    return "|".join(branches)


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


def test_random_patterns_are_refused_or_huggingface_s():
    pick = random.Random(1)
    short = ["".join(text) for n in range(1, 4) for text in itertools.product(LETTERS, repeat=n)]
    compiled = with_context = 0
    while compiled < share(120):
        pattern = random_pattern(pick)
        try:
            with_context += build(pattern, "oniguruma").context is not None
        except (UnsupportedTokenizerError, TokenizerFileError):
            continue
        compiled += 1
        longer = ["".join(pick.choice(LETTERS) for _ in range(pick.randint(4, 12))) for _ in range(20)]
        check(pattern, pick.sample(short, 20) + longer)
    assert with_context > share(30)


def test_random_patterns_are_refused_or_tiktoken_s():
    pick = random.Random(2)
    texts = ["".join(text) for n in range(1, 5) for text in itertools.product(LETTERS, repeat=n)]
    ranks = {bytes([byte]): byte for byte in range(256)}
    for text in texts:
        ranks.setdefault(text.encode(), len(ranks))
    pieces = {rank: piece.decode("latin-1") for piece, rank in ranks.items()}
    compiled = 0
    while compiled < share(60):
        pattern = random_pattern(pick)
        try:
            automaton = build(pattern, "fancy-regex")
        except (UnsupportedTokenizerError, TokenizerFileError):
            continue
        compiled += automaton.context is not None
        encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for text in pick.sample(texts, 40):
            found = [text[start:end] for start, end, is_gap in find_pieces(automaton, text) if not is_gap]
            assert found == [pieces[rank] for rank in encoding.encode_ordinary(text)], (pattern, text)


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


def test_bytes_hold_all_of_a_context():
    automaton = build(GROUPS_OF_THREE["Tiny Aya"], "oniguruma")
    again = Automaton.from_bytes(automaton.to_bytes())
    for name in ("behind", "transitions", "symbols"):
        ours, theirs = getattr(automaton.context, name), getattr(again.context, name)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
        assert not theirs.flags.writeable
    assert find_pieces(again, "1234 5") == find_pieces(automaton, "1234 5")


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, b"", "a context without classes"),
        (0, b"\x01", "its tables have indices out of range"),
        (0, b"\x01" * 6 + b"\xff", "cannot reshape"),
        (1, b"\xff\xff", "cannot reshape"),
        (2, b"", "its tables have indices out of range"),
        (1, "far", "its tables have indices out of range"),
        (2, "far", "its tables have indices out of range"),
    ],
)
def test_a_context_that_lies_is_refused(place, value, message):
    body = msgspec.msgpack.decode(build(GROUPS_OF_THREE["Tiny Aya"], "oniguruma").to_bytes()[len(_MAGIC) + 32 :])
    body[10][place] = b"\xff" * len(body[10][place]) if value == "far" else value
    encoded = msgspec.msgpack.encode(body)
    with pytest.raises(TokenizerFileError) as error:
        Automaton.from_bytes(_MAGIC + hashlib.sha256(encoded).digest() + encoded)
    assert message in str(error.value)


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
