"""Search for marks in text that comes in parts: a mark may be cut off by the end of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

MAX_AT_ONCE = 1 << 12
"""Most characters per step of a parser that slices its input repeatedly, which avoids quadratic time."""

MAX_HEADER = 1024
"""Most characters of a name, or of other text that is scanned again with each part until it is complete."""


def in_parts(text: str) -> Iterator[str]:
    """Yield a text in parts of at most `MAX_AT_ONCE` characters."""
    return (text[place : place + MAX_AT_ONCE] for place in range(0, len(text), MAX_AT_ONCE))


def first_match(search: Callable[[str, int], re.Match[str] | None], text: str, place: int = 0) -> int:
    """Return the index of a pattern's first match from `place` on, or the length of the text if nothing matches.

    Args:
        search: The `search` method of a compiled pattern.
        text: The text.
        place: The index at which to begin.

    """
    found = search(text, place)
    return found.start() if found else len(text)


def mark_at(text: str, place: int, marks: Iterable[str]) -> tuple[str, bool]:
    """Return the one of `marks` that stands at index `place` of the text, or an empty text.

    Args:
        text: The text so far.
        place: The index.
        marks: Texts of markup. One that is a prefix of another must be listed after it.

    Returns:
        The mark, and whether the text ends too early to decide.

    """
    partial = False
    for mark in marks:
        if text.startswith(mark, place):
            return ("", True) if partial else (mark, False)
        if len(text) - place < len(mark) and mark.startswith(text[place:]):
            partial = True
    return "", partial


def find_mark(text: str, place: int, marks: tuple[str, ...]) -> tuple[int, str]:
    """Find the first occurrence of any of `marks` from index `place` on.

    Args:
        text: The text so far.
        place: The index at which to begin.
        marks: Texts of markup, none a prefix of another.

    Returns:
        The index of the mark, and the mark. If no mark is complete, the index where a mark may begin that the end of
        the text cuts off, or the length of the text; and an empty text.

    """
    found = first_of(marks)(text, place)
    return (len(text), "") if found is None else (found.start(), mark_at(text, found.start(), marks)[0])


@lru_cache(maxsize=1024)  # some marks contain names that a model has written
def first_of(marks: tuple[str, ...]) -> Callable[..., re.Match[str] | None]:
    """Return the `search` method of a pattern for the first of several marks, or for the start of one at the text's end."""
    return re.compile("|".join(map(whole_or_cut, marks)) or "(?!)").search


def whole_or_cut(mark: str, pattern: str = "") -> str:
    """Return a pattern for a mark and `pattern` behind it, or for the start of the mark at the text's end."""
    for char in reversed(mark):
        pattern = re.escape(char) + (pattern and rf"(?:\Z|{pattern})")
    return pattern
