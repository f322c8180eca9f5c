"""Lines at the bottom of a terminal that are redrawn as they grow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from typing import TextIO

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_TOGETHER, _SHOW = "\x1b[?2026h", "\x1b[?2026l"  # synchronised output, where supported


class LiveLines:
    """Text at the bottom of a terminal that is drawn again as it grows; only changed lines are rewritten.

    Lines that have scrolled out of the window cannot be changed any more. If they should change, because the window has
    another width or a table other columns, the text continues below: a line or two may be shown twice, but no line is
    lost.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._drawn: list[str] = []  # the cursor is behind the last of them
        self._above: list[str] = []  # the lines at the head of the text that have left the window

    def draw(self, lines: Sequence[str], width: int, height: int) -> None:
        """Show a text in place of the one drawn before.

        Args:
            lines: All lines of the text, with escape codes for styles only.
            width: Columns of the window. A terminal whose width changes wraps anew what is on it.
            height: Rows of the window.

        """
        above, drawn = len(self._above), self._drawn
        if lines[:above] != self._above:  # they were rewrapped
            above = _lines_of(lines, most=_count_characters(self._above) - width)
        new = list(lines[above:])
        if new == drawn:
            return
        rows = [_rows(line, width) for line in drawn]
        reachable = len(list(takewhile(lambda total: total <= height, accumulate(reversed(rows)))))
        first = _first_change(drawn, new)
        if first < (top := len(drawn) - reachable):
            above += _lines_of(new, most=_count_characters(drawn[:top]) - width)
            new, drawn, rows = list(lines[above:]), drawn[top:], rows[top:]
            first = _first_change(drawn, new)
        up = sum(rows[first:]) - 1
        home = "\r" + (f"\x1b[{up}A" if up > 0 else "") + "\x1b[J"
        self._out.write(_TOGETHER + home + "\n".join(new[first:]) + _SHOW)
        self._out.flush()
        self._drawn, self._above = new, list(lines[:above])

    def end(self) -> None:
        """Leave the drawn lines as they are, and go to the line below, where the next text begins."""
        if self._drawn:
            self._out.write("\n")
            self._out.flush()
        self._drawn, self._above = [], []


def unstyled(line: str) -> str:
    """Return the line without its escape codes for styles."""
    return _STYLE.sub("", line)


def unpadded(line: str) -> str:
    """Return the line without spaces at its end, before, between and behind escape codes, which are kept."""
    end, codes = len(line), ""
    for code in reversed([*_STYLE.finditer(line)]):
        if line[code.end() : end].strip(" "):
            break
        end, codes = code.start(), code[0] + codes
    return line[:end].rstrip(" ") + codes


def _first_change(drawn: Sequence[str], new: Sequence[str]) -> int:
    """Return the index of the first line to rewrite: the first that differs, or the last of the shorter list.

    At least one line is rewritten, because the cursor is on the last one drawn.

    Args:
        drawn: The lines on the screen.
        new: The lines to show.

    """
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(drawn, new, strict=False)))
    return max(0, min(same, len(drawn) - 1, len(new) - 1))


def _rows(line: str, width: int) -> int:
    from rich.cells import cell_len

    return max(1, -(-cell_len(unstyled(line)) // width))


def _count_characters(lines: Iterable[str]) -> int:
    """Return how many characters of the lines are neither white space nor escape codes; wrapping does not change it."""
    return sum(len("".join(unstyled(line).split())) for line in lines)


def _lines_of(lines: Sequence[str], most: int) -> int:
    """Return how many lines from the first on have, together, at most `most` characters as `_count_characters` counts them."""
    return len(list(takewhile(lambda total: total <= most, accumulate(_count_characters([line]) for line in lines))))
