"""Markdown as a model writes it, for a terminal.

Nothing that a model says goes missing: HTML, images, links' definitions and the backslashes of LaTeX, which rich would
leave out, stay text, and a single line feed stays one. A table whose words do not fit beside each other becomes a list,
and what is nested too deep for the window is shown as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement, TableElement
from rich.measure import Measurement, measure_renderables
from rich.table import Table
from rich.text import Text

_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["table", "strikethrough"])
    .disable(["html_block", "html_inline", "reference", "image", "entity", "autolink", "text_join"])
)

_MATH = frozenset("()[]{},;:!|")
"""Behind a backslash these are LaTeX far more often than escapes: both signs are shown."""


class _BoldHeading(Heading):
    """Heading of a Markdown text for rich: on the left, bold, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class _WholeTable(TableElement):
    """Table of a Markdown text for rich whose words are not cut off.

    If the window is too narrow for the words, the table becomes a list: a line for each cell, behind its column's name.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = [cell.content for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        for name in names:
            name.stylize("markdown.table.header")
        table = Table(box=box.SIMPLE, pad_edge=False, style="markdown.table.border", collapse_padding=True)
        for name in names:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*row)
        columns = [
            measure_renderables(console, options.update(width=_ENDLESS), column)
            for column in zip(names, *rows, strict=True)
        ]
        whole = Measurement.get(console, options.update(width=_ENDLESS), table).maximum
        widths = _widths(columns, options.max_width - (whole - sum(column.maximum for column in columns)))
        if widths is None:
            yield from _listed(names, rows)
            return
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        yield table


_ENDLESS = 1 << 20  # columns
_LONG_WORD = 16  # columns of a word from which on it may be broken, as addresses are and what has no spaces


def _widths(columns: Sequence[Measurement], room: int) -> list[int] | None:
    """Distribute `room` columns of the window over the columns of a table, the smallest demands first.

    Return the widths; None if the words do not fit.
    """
    widths = [min(column.minimum, _LONG_WORD) for column in columns]
    spare = room - sum(widths)
    if spare < 0:
        return None
    wishes = sorted((column.maximum - widths[i], i) for i, column in enumerate(columns))
    for done, (wish, i) in enumerate(wishes):
        more = min(wish, spare // (len(wishes) - done))
        widths[i] += more
        spare -= more
    return widths


def _listed(names: Sequence[Text], rows: Sequence[Sequence[Text]]) -> Iterator[Text]:
    if not rows:
        yield from names
    for number, row in enumerate(rows):
        if number:
            yield Text()
        for name, cell in zip(names, row, strict=True):
            yield Text.assemble(name, ": ", cell) if name else cell


_LEVEL, _LEAST = 4, 8  # columns that a level of nesting takes, and that a text needs


def _depth(tokens: Sequence[Token]) -> int:
    """Return how deep lists and quotations are nested in parsed Markdown; 0 without any."""
    nesting = accumulate(token.nesting for token in tokens if token.tag in ("li", "blockquote"))
    return max(nesting, default=0)


class LightMarkdown(Markdown):
    """Markdown text that rich can print at a terminal, in a plainer style than rich's own."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _BoldHeading,
        "table_open": _WholeTable,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self._text = text
        self.parsed = _PARSER.parse(text)
        self._least = _LEAST + _LEVEL * _depth(self.parsed)
        for token in self.parsed:
            for child in token.children or ():
                if child.type == "softbreak":
                    child.type = "hardbreak"
                elif child.type == "text_special":  # an escape
                    child.type = "text"
                    child.content = child.markup if child.content in _MATH else child.content

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width < self._least:
            yield Text(self._text)
        else:
            yield from super().__rich_console__(console, options)


def finished(text: str) -> int:
    """Return how many characters at the beginning of a Markdown text belong to finished blocks.

    A block is finished when another one has begun below it in a line that is complete.
    """
    whole = text[: text.rfind("\n") + 1]
    starts = [token.map[0] for token in _PARSER.parse(whole) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return 0
    return sum(len(line) + 1 for line in whole.split("\n")[: starts[-1]])
