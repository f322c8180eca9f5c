"""Display of tokens in a terminal, each with its id on a background colour of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from tokenweir.cli.options import missing_extra
from tokenweir.cli.terminal.escape_codes import styled
from tokenweir.encode.base.visible_text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from tokenweir.encode.tokenizer import Tokenizer

GROUNDS = ("#cfe8ff", "#ffe3c4", "#d8f3d0", "#f6d4e6", "#e5dcff", "#fff3b0")
"""Light grounds, on which black text has a contrast of at least 15 to 1."""
SVG_WIDTH = 84
"""Characters of a drawn line."""


def shown(data: bytes) -> str:
    """Return a token's bytes as one line of text.

    It is as `one_line` makes it; invalid bytes become escapes.
    """
    return one_line(data.decode("utf-8", "backslashreplace"))


def one_line(text: str) -> str:
    """Return a text with control characters made `visible`, ↵ for line feeds and ⇥ for tabs."""
    return visible(text).replace("\n", "↵").replace("\t", "⇥")


class TokenView:
    """Display of the tokens of a text, each on a colour, printed or as an SVG picture."""

    def __init__(self, tokenizer: Tokenizer, ids: Sequence[int]) -> None:
        self._ids = ids
        self._data = [tokenizer.token_bytes(token_id) for token_id in ids]

    def print(self, out: TextIO) -> None:
        """Print the text, its ids, and the numbers of tokens and characters; in colours if the terminal `out` has them."""
        self._print(console_of(file=out, color_system="auto" if styled(out) else None))

    def svg(self) -> str:
        """Return the source of an SVG picture of what `print` shows; it needs only a monospaced font."""
        import io
        import re

        console = console_of(width=SVG_WIDTH, record=True, file=io.StringIO(), force_terminal=True)
        from rich.terminal_theme import DEFAULT_TERMINAL_THEME

        self._print(console)
        picture = console.export_svg(title=f"{len(self._ids)} tokens", unique_id="tokens", theme=DEFAULT_TERMINAL_THEME)
        return re.sub(r"@font-face \{.*?\}\n?", "", picture, flags=re.DOTALL)  # fonts of another server

    def _print(self, console: Console) -> None:
        from rich.text import Text

        text, numbers = Text(), Text()
        for place, (token_id, data) in enumerate(zip(self._ids, self._data, strict=True)):
            style = f"black on {GROUNDS[place % len(GROUNDS)]}"
            text.append(shown(data), style)
            if data.endswith(b"\n"):
                text.append("\n")
            numbers.append(str(token_id), style).append(" ")
        characters = len(b"".join(self._data).decode("utf-8", "replace"))
        self._show(console, text)
        self._show(console, numbers)
        console.print(f"{len(self._ids)} tokens, {characters} characters", style="dim")

    @staticmethod
    def _show(console: Console, text: Text) -> None:
        if text.plain.strip():
            console.print(text, overflow="fold")


def console_of(**options: Any) -> Console:
    """Return a console of rich, made with its `options`; raise `TokenweirError` if rich is not installed."""
    try:
        from rich.console import Console
    except ImportError as error:
        raise missing_extra("colours need", error) from error
    return Console(highlight=False, **options)
