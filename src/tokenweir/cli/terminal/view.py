"""Views of an answer: plain text for programs, light Markdown for terminals.

Both views take the text of one channel after another. `PlainView` writes what it gets at once. `MarkdownView` keeps the
block that is still open, a paragraph or a list, and draws it anew when text is added or the window changes its width;
blocks that are finished are written once and stay.
"""

from __future__ import annotations

import os
import time
from typing import Literal, TextIO

from tokenweir.cli.terminal.escape_codes import controllable, dim, styled
from tokenweir.cli.terminal.live_lines import LiveLines, unpadded, unstyled
from tokenweir.encode.base.visible_text import visible

_SETTLING = 0.3
"""Seconds without a new width until lines are drawn over others.

tmux wraps its rows anew at once, and tells the program the new width up to 0.25 seconds later. Lines drawn in between
would go over rows above the answer, which are the person's own words.
"""


class PlainView:
    """View that writes text at once and unformatted, with control characters made visible.

    A view shows the channels of an answer (thinking, text, tool calls), one below the other.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._styled = styled(out)
        self._dimmed = False
        self._begun = self._midline = False

    def open(self, label: str | None, *, dimmed: bool = False, markdown: bool = False) -> None:
        """Begin a channel, below an empty line.

        Args:
            label: The channel's name, printed in a line of its own; None for no name.
            dimmed: Show its text dim, if the terminal can.
            markdown: Its text is Markdown.

        """
        if self._begun:
            self._out.write("\n\n" if self._midline else "\n")
        if label is not None:
            self._out.write(f"[{label}]\n")
        self._begun, self._midline = True, False
        self._dimmed = dimmed and self._styled

    def write(self, text: str) -> None:
        """Add text to the channel that is open."""
        self._out.write(dim(text, self._dimmed))
        self._out.flush()
        self._midline = not text.endswith("\n")

    def draw(self) -> None:
        """Show the text that was added and is not on the screen yet."""

    def close(self) -> None:
        """Show all text, and end the line on which it ends."""
        if self._midline:
            self._out.write("\n")
            self._out.flush()
            self._midline = False


class MarkdownView:
    """View that draws an answer as blocks of Markdown; their words stay whole at any width of the window."""

    def __init__(self, out: TextIO) -> None:
        """Start below the cursor of the terminal `out`; raise `ImportError` if rich is not installed."""
        from rich.console import Console

        self._out = out
        self._lines = LiveLines(out)
        colors: Literal["auto"] | None = "auto" if styled(out) else None
        self._console = Console(
            file=out, force_terminal=True, legacy_windows=False, highlight=False, color_system=colors
        )
        self._text = ""
        self._drawn: tuple[str, int] | None = None  # the text and the width of what is on the screen
        self._width, self._settled_at = window(out)[0], 0.0
        self._begun = self._dimmed = self._markdown = False

    def open(self, label: str | None, *, dimmed: bool = False, markdown: bool = False) -> None:
        self._finish(self._text)
        if self._begun:
            self._out.write("\n")
        if label is not None:
            self._out.write(f"[{label}]\n")
        self._begun, self._dimmed, self._markdown, self._text = True, dimmed, markdown, ""

    def write(self, text: str) -> None:
        self._text += visible(text)
        if self._markdown and "\n" in text:
            from tokenweir.cli.terminal.markdown import finished

            if end := finished(self._text):
                self._finish(self._text[:end])
                self._out.write("\n")
                self._text = self._text[end:]

    def draw(self) -> None:
        width, height, settling = self._window()
        if not settling and self._drawn != (self._text, width):
            self._lines.draw(self._rendered(self._text, width), width, height)
            self._drawn = (self._text, width)

    def close(self) -> None:
        self._finish(self._text)
        self._text = ""
        self._out.flush()

    def _finish(self, text: str) -> None:
        width, height, settling = self._window()
        if settling and self._drawn is not None:
            time.sleep(settling)
            width, height, _ = self._window()
        self._lines.draw(self._rendered(text, width), width, height)
        self._lines.end()
        self._drawn = None

    def _window(self) -> tuple[int, int, float]:
        """Return the columns and rows of the terminal, and for how many seconds nothing should be redrawn.

        The latter is 0 unless the width has just changed.
        """
        width, height = window(self._out)
        now = time.monotonic()
        if width != self._width:
            self._width, self._settled_at = width, now + _SETTLING
        return width, height, max(0.0, self._settled_at - now)

    def _rendered(self, text: str, width: int) -> list[str]:
        from rich.styled import Styled
        from rich.text import Text

        from tokenweir.cli.terminal.markdown import LightMarkdown

        if not text.strip():
            return []
        self._console.width = width
        shown = LightMarkdown(text) if self._markdown else Text(text)
        with self._console.capture() as captured:
            self._console.print(Styled(shown, "dim") if self._dimmed else shown)
        lines = [unpadded(line) for line in captured.get().split("\n")]  # a narrower terminal would wrap the padding
        text_at = [number for number, line in enumerate(lines) if unstyled(line).strip()]
        return lines[text_at[0] : text_at[-1] + 1] if text_at else []  # without the empty lines around blocks


View = PlainView | MarkdownView


def window(out: TextIO) -> tuple[int, int]:
    """Return the columns and rows of the terminal `out`; 80 by 24 if unknown."""
    try:
        columns, rows = os.get_terminal_size(out.fileno())
    except (OSError, ValueError):
        columns = rows = 0
    return columns or 80, rows or 24


def view_of(out: TextIO) -> View:
    """Return the view for a stream: `MarkdownView` if it is a terminal with escape codes, else `PlainView`.

    Raise `ImportError` if a `MarkdownView` is needed and rich is not installed.
    """
    return MarkdownView(out) if controllable(out) else PlainView(out)
