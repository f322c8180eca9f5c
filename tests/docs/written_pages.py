"""Pages that have parts written from the code, each between `<!-- NAME:begin -->` and `<!-- NAME:end -->`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = [*header]
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def written(page: Path, **parts: str) -> str:
    """Return the text of a page with each part in its place."""
    text = page.read_text("utf-8")
    for name, part in parts.items():
        between = rf"(?s)(?<=<!-- {name}:begin -->\n).*?(?=<!-- {name}:end -->)"
        text, found = re.subn(between, lambda _, part=part: f"{part}\n", text)
        assert found == 1, name
    return text


def check(page: Path, **parts: str) -> None:
    assert page.read_text("utf-8") == written(page, **parts)


def write(page: Path, **parts: str) -> None:
    page.write_text(written(page, **parts), "utf-8")
