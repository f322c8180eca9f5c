"""Peek2's Table 1, derived from the compiled cl100k pattern.

Peek2 (Liu and Klampanos, "Peek2: Regex-free Byte-level Byte-Pair Encoding Pretokenizer for LLM Inference on Edge
Devices") decides by the categories of the next two characters which of five branches takes the next piece. The automaton
knows nothing of branches. But each branch is a pattern of its own, so whether it takes the same piece as cl100k from a
pair of categories on is a question about two automata, and it is answered here for all texts, not for samples.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from unicode_scalars import SCALARS

from tokenweir.encode.pattern import Automaton
from tokenweir.encode.pattern.compile import build
from tokenweir.encode.pattern.determinize import DEAD, MATCH
from tokenweir.encode.reference import find_pieces

CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
BRANCHES = [
    rf"'(?i:[sdmt]|ll|ve|re)|{WORD}",  # a contraction, or else a word (section 3.3)
    WORD,
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s+\z|\s*[\r\n]|\s+(?!\S)|\s",  # with `\s++$`, which the paper's appendix has and its text leaves out
]
CATEGORIES = [r"[^\s\p{L}\p{N}']", " ", "'", r"[\r\n]", r"\p{L}", r"[^\S \r\n]", r"\p{N}"]

TABLE_1 = [  # as printed; rows are the first category, columns the second
    [3, 3, 3, 3, 1, 3, 3],
    [3, 4, 3, 4, 1, 4, 4],
    [3, 3, 3, 3, 0, 3, 3],
    [4, 4, 4, 4, 4, 4, 4],
    [1, 1, 1, 1, 1, 1, 1],
    [4, 4, 4, 4, 1, 4, 4],
    [2, 2, 2, 2, 2, 2, 2],
]


@cache
def automata() -> list[Automaton]:
    """cl100k's, and that of each branch."""
    return [build(pattern, "fancy-regex") for pattern in (CL100K, *BRANCHES)]


@cache
def joint_symbols() -> list[tuple[int, tuple[int, ...]]]:
    """The category and the class in each automaton, for every combination that some character has."""
    category = np.zeros(len(SCALARS), np.uint8)
    for number, pattern in enumerate(CATEGORIES):
        members = build(pattern, "fancy-regex")
        category[members.classes(SCALARS) == members.classes(_member(members))[0]] = number
    columns = np.stack([category, *(automaton.classes(SCALARS) for automaton in automata())], axis=1)
    _, first = np.unique(columns @ 256 ** np.arange(7), return_index=True)  # rows as numbers, which sort faster
    return [(row[0], tuple(row[1:])) for row in columns[first].tolist()]


def _member(automaton: Automaton) -> str:
    return next(c for c in SCALARS if not find_pieces(automaton, c)[0][2])


def same_first_piece(branch: int, first: int, second: int) -> bool:
    """Whether cl100k and a branch take the same first piece from every text whose first two categories are these."""
    whole, part = (automata()[number].transitions.tolist() for number in (0, 1 + branch))
    end = tuple(automaton.n_classes for automaton in automata())
    queue = [
        (0, 0, True, 0)
    ]  # the two states, whether the longest matches so far are one, characters read (2: or more)
    seen = set(queue)
    for state, other, agree, length in queue:
        allowed = [
            classes for category, classes in joint_symbols() if length == 2 or category == (first, second)[length]
        ]
        for classes in [*allowed, end] if length == 2 else allowed:
            cell = whole[state][classes[0]] if state != DEAD else DEAD
            other_cell = part[other][classes[1 + branch]] if other != DEAD else DEAD
            flags = bool(cell & MATCH), bool(other_cell & MATCH)
            # A gap is a match of its own here: the branch takes nothing.
            same = agree if not any(flags) else flags[0] == flags[1] and cell >> 14 == other_cell >> 14
            following = cell & DEAD, other_cell & DEAD, same, min(length + 1, 2)
            if following[:2] == (DEAD, DEAD):
                if not same:
                    return False
            elif following not in seen:
                seen.add(following)
                queue.append(following)
    return True


@pytest.mark.parametrize("first", range(7))
def test_table_1_follows_from_the_automaton(first):
    row = []
    for second in range(7):
        plain = [branch for branch in (1, 2, 3, 4) if same_first_piece(branch, first, second)]
        assert len(plain) <= 1
        row.append(plain[0] if plain else 0)
        assert same_first_piece(row[-1], first, second)
    assert row == TABLE_1[first]


def test_the_last_character_is_a_piece_whatever_second_category_it_is_given():
    # The paper leaves the second category open at the end of the text; there is nothing left to decide there.
    for pattern in CATEGORIES:
        letter = _member(build(pattern, "fancy-regex"))
        assert find_pieces(automata()[0], letter) == [(0, 1, False)]


def test_the_seven_categories_are_the_classes_of_the_automaton_but_for_the_letters_of_contractions():
    classes_of: list[set[int]] = [set() for _ in CATEGORIES]
    for category, classes in joint_symbols():
        classes_of[category].add(classes[0])
    assert [len(classes) for classes in classes_of] == [1, 1, 1, 1, 5, 1, 1]
    assert len(set().union(*classes_of)) == automata()[0].n_classes == 11
    letters = [
        "sdmtSDMT\u017f",
        "lL",
        "vrVR",
        "eE",
        "abcxyz\u212a\u00e9\u4e2d",
    ]  # 's, 'll, 've and 're, their e, others
    found = [set(automata()[0].classes(group).tolist()) for group in letters]
    assert [len(classes) for classes in found] == [1] * 5
    assert set().union(*found) == classes_of[4]
