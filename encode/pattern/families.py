"""Automata that the core's scanner (core/pretokenizers/scanner.h) can stand in for, 64 bytes at a time.

An automaton is recognised by its tables alone. Minimal automata of patterns that mean the same are equal, so the digest
of the transitions and of the classes of some characters tells which one it is, whatever the pattern looks like. That the
scanner does what an automaton with such a digest does is shown by tests/encode/core/pretokenizers/test_scanner.py.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from tokenweir.encode.pattern.automaton import Automaton

_OTHER, _LETTER, _UPPER, _LOWER, _DEFERRED = range(5)  # `Kind` of the scanner

_KINDS = {  # a character beyond ASCII for each class that may have some
    "\N{EURO SIGN}": _OTHER,
    "\N{CJK UNIFIED IDEOGRAPH-4E2D}": _LETTER,
    "\N{LATIN CAPITAL LETTER E WITH ACUTE}": _UPPER,
    "\N{LATIN SMALL LETTER E WITH ACUTE}": _LOWER,
    "\N{COMBINING ACUTE ACCENT}": _DEFERRED,
    "\N{LATIN SMALL LETTER LONG S}": _DEFERRED,  # an s to what ignores case
    "\N{NO-BREAK SPACE}": _DEFERRED,
    "\N{ARABIC-INDIC DIGIT ZERO}": _DEFERRED,
}

_ASCII = "".join(map(chr, range(128)))

_FAMILIES = {
    "bea616470f1de721c57c63a01cde556b": "gpt2",
    "bd824dd5b4a54314fabd700bbf41084e": "cl100k",  # of tiktoken: white space at the end of the text is one piece
    "f160fe68d012d2138aa5d69c08f1a4ac": "cl100k",  # Llama-3
    "63c7757fb2239f9bbeac996cd91ebba5": "qwen",
    "fa28f9a44cf1f8aff5804a257b0f5670": "qwen",  # 3.5: marks are letters
    "0e6cf0ae4e6bebec2adaffe36bbd649e": "o200k",
    "bd710234e0327e1e843b87593f396e84": "tekken",
}
"""The family of each known automaton, by its digest."""


class Family(NamedTuple):
    """What the scanner is told.

    Attributes:
        name: Which of its rules hold.
        kinds: What each class is beyond ASCII.

    """

    name: str
    kinds: list[int]


def recognized(automaton: Automaton) -> Family | None:
    """The family of an automaton; None if the scanner knows none like it."""
    name = _FAMILIES.get(digest(automaton))
    if name is None:
        return None
    kinds = [_DEFERRED] * automaton.n_classes
    for character, kind in reversed(_KINDS.items()):  # where classes are one, the first kind holds
        kinds[int(automaton.classes(character)[0])] = kind
    return Family(name, kinds)


def digest(automaton: Automaton) -> str:
    """What tells one automaton from others, apart from which characters beyond ASCII its classes have."""
    if automaton.context is not None:
        return ""
    classes = automaton.classes(_ASCII + "".join(_KINDS))
    tables = automaton.transitions.astype("<u2").tobytes() + classes.tobytes()
    return hashlib.sha256(tables).hexdigest()[:32]
