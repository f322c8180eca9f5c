"""Lines that are drawn again, on a screen that is simulated by the rules of a terminal."""

from __future__ import annotations

import io
import re

from hypothesis import example, given
from hypothesis import strategies as st

from tokenweir.cli.terminal.live_lines import LiveLines, unstyled


class Screen(io.StringIO):
    """A terminal that keeps all rows; those above the last `height` cannot be reached any more."""

    def __init__(self, width, height):
        super().__init__()
        self.width, self.height = width, height
        self.rows, self.row, self.column = [""], 0, 0

    def write(self, text):
        for part in re.findall(r"\x1b\[\??[0-9]*[A-Za-z]|\r|\n|.", unstyled(text), re.DOTALL):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.row, self.column = self.row + 1, 0
                self.rows += [""] * (self.row + 1 - len(self.rows))
            elif part.endswith("A"):
                self.row = max(self.row - int(part[2:-1]), len(self.rows) - self.height, 0)
            elif part == "\x1b[J":
                self.rows[self.row :] = [self.rows[self.row][: self.column]]
            elif not part.startswith("\x1b"):
                assert self.column < self.width
                self.rows[self.row] = self.rows[self.row][: self.column] + part
                self.column += 1
        return len(text)


def wrapped(text, width):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines


@given(st.lists(st.text("ab", min_size=1, max_size=6), max_size=60), st.integers(6, 20), st.integers(2, 6), st.data())
def test_text_that_grows_is_on_the_screen_once(words, width, height, data):
    screen = Screen(width, height)
    live = LiveLines(screen)
    text = " ".join(words)
    at = 0
    while at < len(text):
        at += data.draw(st.integers(1, 12))
        live.draw(wrapped(text[:at], width), width, height)
    live.end()
    assert screen.rows[: len(wrapped(text, width))] == wrapped(text, width)
    assert not "".join(screen.rows[len(wrapped(text, width)) :])


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=60), st.lists(st.integers(6, 30), min_size=2)
)
@example(
    [
        "a",
        "a",
        "aaa",
        "aaaaaa",
        "a",
        "a",
        "a",
        "aa",
        "aaaa",
        "aaaaa",
        "aaaaa",
        "aaaaa",
        "aab",
        "aaaa",
        "a",
        "a",
        "a",
        "a",
        "a",
    ],
    [6] * 9 + [7, 6],
)
def test_nothing_is_lost_when_the_width_changes(words, widths):
    screen = Screen(30, 3)
    live = LiveLines(screen)
    text = " ".join(words)
    for number, width in enumerate(widths, 1):  # a wide terminal, so that what is drawn is not wrapped anew
        live.draw(wrapped(text[: len(text) * number // len(widths)], width), 30, 3)
    live.draw(wrapped(text, 30), 30, 3)
    shown = "".join("".join(screen.rows).split())
    rest = iter(shown)
    assert all(sign in rest for sign in text.replace(" ", ""))


def test_only_what_changes_is_written():
    out = io.StringIO()
    live = LiveLines(out)
    live.draw(["one", "two", "thr"], 80, 24)
    out.seek(out.truncate(0))
    live.draw(["one", "two", "three"], 80, 24)
    assert out.getvalue() == "\x1b[?2026h\r\x1b[Jthree\x1b[?2026l"
    out.seek(out.truncate(0))
    live.draw(["one", "two", "three"], 80, 24)
    assert out.getvalue() == ""


def test_lines_that_are_taken_away():
    screen = Screen(20, 10)
    live = LiveLines(screen)
    live.draw(["one", "| two", "| three"], 20, 10)
    live.draw(["one"], 20, 10)
    live.draw(["one", "**bold**"], 20, 10)
    live.draw(["one", "\x1b[1mbold\x1b[0m"], 20, 10)
    live.end()
    assert screen.rows == ["one", "bold", ""]
