"""The Python examples of the documentation run: a page's blocks, in order, in one namespace of one event loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_examples import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```python" in page.read_text("utf-8")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(page)


def test_there_are_pages_with_examples():
    assert {"README.md", "tutorial.md", "own-engine.md", "inference-loop.md"} <= {page.name for page in PAGES}
