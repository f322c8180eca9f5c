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
    r"""Return the 25 White_Space code points: `\s` in both dialects."""
    return _decode(_lines()["white_space"])


def word(dialect: str) -> Ranges:
    r"""Return the class of `\w` in a dialect.

    Args:
        dialect: "oniguruma", "oniguruma-bracket" for its different meaning inside a bracket expression, or "fancy-regex".
            They differ in eight code points.

    """
    return _decode(_lines()[f"word={dialect}"])


COMPONENT_SETS = ("numeric", "punctuation")
"""The character sets of `Digits`, and of `Punctuation` and `BertPreTokenizer`, in HuggingFace's library."""


def component_set(name: str) -> Ranges:
    """Return one of `COMPONENT_SETS`; they have other versions of Unicode, 17 and about 8."""
    return _decode(_lines()[f"component={name}"])


@cache
def fold_pairs() -> NDArray[np.int32]:
    """Return simple case folding as ordered pairs of different, equivalent code points; shape (n, 2)."""
    orbits = [[int(c, 16) for c in orbit.split("/")] for orbit in _lines()["fold"].split()]
    return np.array([(a, b) for orbit in orbits for a in orbit for b in orbit if a != b], np.int32)


def full_folds() -> Ranges:
    """Return the code points that full case folding expands, such as U+00DF, and those of the expansions, such as s."""
    return _decode(_lines()["full_folds"])
