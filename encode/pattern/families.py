"""The pattern families for which the core has a scanner (core/pretokenizers/scanner.h), the fast path of an automaton.

An automaton is recognised by its tables. Minimal automata of equivalent patterns are equal, so a digest of the transitions
and of the classes of some characters identifies the family, however the pattern is written.
tests/encode/core/pretokenizers/test_scanner.py proves that the scanner equals each automaton with such a digest.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from tokenweir.encode.pattern.automaton import Automaton

_OTHER, _LETTER, _UPPER, _LOWER, _DEFERRED = range(5)  # `Kind` of the scanner

_KINDS = {  # a sample character for each class that may have non-ASCII characters
    "\N{EURO SIGN}": _OTHER,
    "\N{CJK UNIFIED IDEOGRAPH-4E2D}": _LETTER,
    "\N{LATIN CAPITAL LETTER E WITH ACUTE}": _UPPER,
    "\N{LATIN SMALL LETTER E WITH ACUTE}": _LOWER,
    "\N{COMBINING ACUTE ACCENT}": _DEFERRED,
    "\N{LATIN SMALL LETTER LONG S}": _DEFERRED,  # equals s when case is ignored
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
    """A family of patterns, with the arguments of the core's scanner for it.

    Attributes:
        name: The family's name.
        kinds: For each class of the automaton the kind of its characters beyond ASCII, as the scanner numbers kinds.

    """

    name: str
    kinds: list[int]


def recognized(automaton: Automaton) -> Family | None:
    """Return the pattern family of an automaton; None if the core has no scanner for it."""
    name = _FAMILIES.get(digest(automaton))
    if name is None:
        return None
    kinds = [_DEFERRED] * automaton.n_classes
    for character, kind in reversed(_KINDS.items()):  # if samples share a class, the first kind wins
        kinds[int(automaton.classes(character)[0])] = kind
    return Family(name, kinds)


def digest(automaton: Automaton) -> str:
    """Return a hash of an automaton's transitions and of the classes of ASCII and the characters of `_KINDS`.

    Return an empty string for an automaton with a context.
    """
    if automaton.context is not None:
        return ""
    classes = automaton.classes(_ASCII + "".join(_KINDS))
    tables = automaton.transitions.astype("<u2").tobytes() + classes.tobytes()
    return hashlib.sha256(tables).hexdigest()[:32]
