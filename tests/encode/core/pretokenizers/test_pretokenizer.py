"""The core's walk over compiled patterns against the plain one, `find_pieces`, for every family of patterns.

The core skips runs of ASCII 16 bytes at a time, joins gaps while it goes, and applies several automata in a row.
"""

from __future__ import annotations

import itertools
import json
import random
import string
from pathlib import Path

import numpy as np
import pytest
from case_tables import cases
from full_run import share

from tokenweir.encode import _core
from tokenweir.encode.errors import TokenizerFileError
from tokenweir.encode.pattern import compile_pattern
from tokenweir.encode.reference import find_pieces

CASES = cases(__file__)

FAMILIES = json.loads((Path(__file__).parents[2] / "pattern" / "patterns.json").read_text())
DEEPSEEK_V3 = ["DeepSeek-V3, first", "DeepSeek-V3, second", "DeepSeek-V3, third"]
DEEPSEEK_LLM = ["line ends", "words", "punctuation", "trailing space", "CJK"]
ASCII = [chr(c) for c in range(128)]


def automaton_of(name):
    return compile_pattern(FAMILIES[name]["pattern"], FAMILIES[name]["dialect"])


def cut(automaton, *behavior):
    return _core.Split(automaton.in_core(), *behavior)


def core_of(*automata):
    return _core.PreTokenizer([cut(automaton) for automaton in automata])


def expected(automata, text, start=0):
    """The (start, end) of each piece, by the plain walk of each automaton in the pieces of the one before."""
    if not automata:
        return [[start, start + len(text)]]
    pieces = find_pieces(automata[0], text)
    return [span for b, e, _ in pieces for span in expected(automata[1:], text[b:e], start + b)]


def check(automata, texts):
    """Compare the core's pieces of texts with those of the plain walks."""
    core = core_of(*automata)
    for text in texts:
        assert core.split(text).tolist() == expected(automata, text), text


def representatives(automaton):
    """One character of each class."""
    found = {}
    for c in itertools.chain(string.ascii_letters, map(chr, range(0xD800)), map(chr, range(0xE000, 0x110000))):
        found.setdefault(automaton.class_pages[automaton.class_index[ord(c) >> 8], ord(c) & 255], c)
        if len(found) == automaton.n_classes:
            break
    return list(found.values())


def short_texts(letters, most):
    """All texts of up to four of these characters; if they are more than `most`, every so many of them."""
    texts = ["".join(text) for n in range(1, 5) for text in itertools.product(letters, repeat=n)]
    return texts[:: len(texts) // most + 1]


def texts_with_runs(letters, seed, count):
    """Characters in runs that end before, at and after 16 bytes, from any place on."""
    pick = random.Random(seed)
    lengths = [1, 1, 1, 2, 3, 14, 15, 16, 17, 31, 32, 33, 48]
    for _ in range(count):
        yield "".join(pick.choice(letters) * pick.choice(lengths) for _ in range(pick.randint(1, 6)))


@pytest.mark.parametrize("name", FAMILIES)
def test_every_pattern(name):
    automaton = automaton_of(name)
    letters = representatives(automaton)
    check([automaton], short_texts(letters, share(9000)))
    check([automaton], texts_with_runs(letters + list("aZ9 -"), name, share(2400)))


@pytest.mark.parametrize("pattern", CASES["runs_that_a_match_ends_in"])
def test_runs_that_a_match_ends_in(pattern):
    automaton = compile_pattern(pattern, "oniguruma")
    check([automaton], short_texts("ab1 \x00é", share(12_000)))
    check([automaton], texts_with_runs("aaab1 \x00é", 0, share(6000)))


@pytest.mark.parametrize("name", ["GPT-2", "cl100k_base", "o200k_base", "DeepSeek-V3, third", "BLOOM"])
def test_runs_and_every_ascii_character(name):
    """After many steps a run of any state is skipped; it may begin anywhere, and anything may be within it or end it."""
    texts = [run * (16 + n) + c + run * 20 + "é" for run, c, n in itertools.product("aA1 -", ASCII, (0, 15, 16))]
    rng = random.Random(name)
    for character in ASCII:
        ends = [("", ""), *(rng.choices(["a", "ab1 ", " ", "\n", "!", "é", "漢"], k=2) for _ in range(8))]
        texts += [a + character * rng.choice((31, 32, 33, 48, 63, 100)) + b for a, b in ends]
    check([automaton_of(name)], texts)


@pytest.mark.parametrize(
    "name", ["DeepSeek-V3, third", "cl100k_base in a tokenizer.json", "BLOOM", "DeepSeek-LLM, words"]
)
def test_gaps_are_joined_or_dropped(name):
    automaton = automaton_of(name)
    keeping, dropping = core_of(automaton), _core.PreTokenizer([cut(automaton, "Removed", True)])
    letters = [*representatives(automaton), "\u200b", "\x01"]
    for text in itertools.chain(short_texts(letters, share(9000)), texts_with_runs(letters, name, share(1800))):
        assert keeping.split(text).tolist() == [[b, e] for b, e, _ in find_pieces(automaton, text)], text
        assert dropping.split(text).tolist() == [
            [b, e] for b, e, is_gap in find_pieces(automaton, text) if not is_gap
        ], text


@pytest.mark.parametrize("names", [DEEPSEEK_V3, [f"DeepSeek-LLM, {name}" for name in DEEPSEEK_LLM]])
def test_patterns_in_a_row(names):
    automata = [automaton_of(name) for name in names]
    letters = sorted({c for automaton in automata for c in representatives(automaton)} | {*"a1 .", "\u200b", "\u200d"})
    pick = random.Random(0)
    mixed = ("".join(pick.choices(letters, k=pick.randint(1, 12))) for _ in range(share(9000)))
    check(automata, itertools.chain(short_texts(letters, share(9000)), texts_with_runs(letters, 0, share(3000)), mixed))


def test_no_pattern_is_one_piece():
    core = core_of()
    assert core.split("a b").tolist() == [[0, 3]]
    assert core.split("").tolist() == []
    assert core_of(automaton_of("GPT-2")).split("").shape == (0, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transitions": np.zeros((0, 0), np.uint16)}, "^an automaton's tables have the wrong size$"),
        ({"transitions": np.zeros((9, 9), np.uint16)}, "^an automaton's tables have the wrong size$"),
        ({"class_index": np.zeros(4351, np.uint16)}, "^an automaton's tables have the wrong size$"),
        ({"class_index": np.full(4352, 9999, np.uint16)}, "^an automaton's class page is out of range$"),
        ({"class_pages": np.full((300, 256), 200, np.uint8)}, "^an automaton's class is out of range$"),
        ({"transitions": np.full((9, 11), 0x3FF0, np.uint16)}, "^an automaton's state is out of range$"),
    ],
)
def test_tables_that_lead_outside_themselves_are_refused(change, message):
    automaton = automaton_of("GPT-2")
    tables = {name: getattr(automaton, name) for name in ("transitions", "class_index", "class_pages")} | change
    with pytest.raises(TokenizerFileError, match=message):
        _core.CompiledPattern(*tables.values(), automaton.n_classes, automaton.sync.astype(np.uint8), None)
