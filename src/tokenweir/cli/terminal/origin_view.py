"""Display of a prompt in a terminal: the text of each origin on a background colour of its own."""

from __future__ import annotations

from typing import TextIO

import tokenweir
from tokenweir.cli.terminal.token_view import GROUNDS, console_of, one_line
from tokenweir.encode.base.visible_text import visible


def draw(prompt: tokenweir.Prompt, out: TextIO) -> None:
    """Print a prompt, with the template's text dim and the text of each other origin on a colour, and a legend of origins.

    Args:
        prompt: The prompt.
        out: Where to print.

    """
    console = console_of(file=out)
    from rich.text import Text

    styles = {"template": "dim"}
    text = Text()
    for span in prompt.origins:
        style = styles.setdefault(span.origin, f"black on {GROUNDS[(len(styles) - 1) % len(GROUNDS)]}")
        written = visible(prompt.text[span.start : span.end]).replace("\n", "↵\n").replace("\t", "⇥")
        text.append(written, style)
    console.print(text, overflow="fold")
    console.print(Text(" ").join(Text(one_line(origin), style) for origin, style in styles.items()), overflow="fold")
