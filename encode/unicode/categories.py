"""Unicode 16.0 classes of code points: general categories, scripts, white space, word characters, simple case folding.

Pre-tokenizer patterns name these classes, and a tokenizer is only reproduced with the tables with which it was trained. So
they are pinned: `scripts/unicode_categories` writes `categories.txt` from Unicode 16.0 and from the two regex engines, and
neither `unicodedata` nor `regex` is used at run time. The file is read at first use, and each class is decoded on demand.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VERSION = "16.0.0"

_GROUPS = {  # the one-letter categories
    "C": ("Cc", "Cf", "Cn", "Co", "Cs"),
    "L": ("Ll", "Lm", "Lo", "Lt", "Lu"),
    "M": ("Mc", "Me", "Mn"),
    "N": ("Nd", "Nl", "No"),
    "P": ("Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps"),
    "S": ("Sc", "Sk", "Sm", "So"),
    "Z": ("Zl", "Zp", "Zs"),
}

Ranges = list[tuple[int, int]]
"""Inclusive ranges of code points."""


@cache
def _lines() -> dict[str, str]:
    text = (Path(__file__).parent / "categories.txt").read_text("ascii")
    return dict(line.split(" ", 1) for line in text.splitlines())


def _decode(line: str) -> Ranges:
    bounds = [span.split("-") for span in line.split()]
    return [(int(bound[0], 16), int(bound[-1], 16)) for bound in bounds]


def property_ranges(name: str) -> Ranges | None:
    r"""Return the class of `\p{name}`, in both regex dialects.

    Args:
        name: A general category (`Lu`), a group of them (`L`), or a script (`Han`), in Unicode's own spelling.

    Returns:
        Inclusive ranges, unordered if a group has several categories; None for an unknown name.

    """
    if name in _GROUPS:
        return [span for category in _GROUPS[name] for span in _decode(_lines()[f"gc={category}"])]
    line = _lines().get(f"gc={name}") or _lines().get(f"script={name}")
    return None if line is None else _decode(line)


def white_space() -> Ranges:
    r"""Return the inclusive ranges of the 25 White_Space code points, which `\s` matches in both regex dialects."""
    return _decode(_lines()["white_space"])


def word(dialect: str) -> Ranges:
    r"""Return the inclusive ranges of the code points that `\w` matches in a regex dialect.

    Args:
        dialect: "oniguruma", "oniguruma-bracket" for its different meaning inside a bracket expression, or "fancy-regex".
            They differ in eight code points.

    """
    return _decode(_lines()[f"word={dialect}"])


COMPONENT_SETS = ("numeric", "punctuation")
"""The character sets of `Digits`, and of `Punctuation` and `BertPreTokenizer`, in HuggingFace's library."""


def component_set(name: str) -> Ranges:
    """Return the inclusive ranges of a character set that a component of HuggingFace's library uses.

    Args:
        name: "numeric" (the set of `Digits`, of Unicode 17) or "punctuation" (of `Punctuation` and `BertPreTokenizer`, of
            about Unicode 8).

    """
    return _decode(_lines()[f"component={name}"])


@cache
def fold_pairs() -> NDArray[np.int32]:
    """Return simple case folding as ordered pairs of different, equivalent code points; shape (n, 2)."""
    orbits = [[int(c, 16) for c in orbit.split("/")] for orbit in _lines()["fold"].split()]
    return np.array([(a, b) for orbit in orbits for a in orbit for b in orbit if a != b], np.int32)


def full_folds() -> Ranges:
    """Return the inclusive ranges of the code points that full case folding concerns.

    They are those that it expands to several, such as U+00DF, and those of the expansions, such as s.
    """
    return _decode(_lines()["full_folds"])
