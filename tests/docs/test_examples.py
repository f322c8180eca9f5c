"""The Python examples of the documentation run: a page's blocks, in order, in one namespace of one event loop."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python" in page.read_text("utf-8")
]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> str:
    """The code of a page's examples, each at its own line, so that a traceback names the place on the page."""
    text = page.read_text("utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in _BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


def run(page: Path) -> None:
    """Run a page's examples; `await` may stand at the top, as inside the `main` that the pages speak of."""
    names: dict[str, Any] = {"__name__": "__main__"}
    done = eval(compile(examples(page), str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(done):
        asyncio.run(done)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(page)


def test_there_are_pages_with_examples():
    assert {"README.md", "tutorial.md", "own-engine.md", "inference-loop.md"} <= {page.name for page in PAGES}
