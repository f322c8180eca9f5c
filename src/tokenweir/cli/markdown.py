"""Markdown as a model writes it, for a terminal.

Nothing that a model says goes missing: HTML, images, links' definitions and the backslashes of LaTeX, which rich would
leave out, stay text, and a single line feed stays one.
"""

from __future__ import annotations

from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement

_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .disable(["html_block", "html_inline", "reference", "image", "entity", "autolink", "text_join"])
)

_MATH = frozenset("()[]{},;:!|")
"""Behind a backslash these are LaTeX far more often than escapes: both signs are shown."""


class _BoldHeading(Heading):
    """A heading on the left, bold, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class LightMarkdown(Markdown):
    """A text of Markdown to print; rich draws it."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "heading_open": _BoldHeading}

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.parsed = _PARSER.parse(text)
        for token in self.parsed:
            for child in token.children or ():
                if child.type == "softbreak":
                    child.type = "hardbreak"
                elif child.type == "text_special":  # an escape
                    child.type = "text"
                    child.content = child.markup if child.content in _MATH else child.content


def finished(text: str) -> int:
    """Where the blocks that no later text can change end, in characters; 0 if there are none.

    A block is finished when another one has begun below it in a line that is complete.
    """
    whole = text[: text.rfind("\n") + 1]
    starts = [token.map[0] for token in _PARSER.parse(whole) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return 0
    return sum(len(line) + 1 for line in whole.split("\n")[: starts[-1]])
