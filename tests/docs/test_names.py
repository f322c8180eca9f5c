"""Names of the public API in the code text of pages exist."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import tokenweir

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_NAME = re.compile(r"(?:tokenweir\.)?([A-Za-z]\w*)\.(\w+)(?:\([^)]*\))?")


def missing(text: str) -> list[str]:
    """The spans of a text that name an attribute which a public object does not have."""
    found = [(span, _NAME.match(span)) for span in _SPAN.findall(text)]
    return [
        span
        for span, name in found
        if name
        and name[1] in tokenweir.__all__
        and not hasattr(public := getattr(tokenweir, name[1]), name[2])
        and name[2] not in getattr(public, "__annotations__", {})
        and not re.search(rf"\bself\.{name[2]}\b|^\s+{name[2]}: ", _source(public), re.MULTILINE)
    ]


def _source(public: object) -> str:
    return inspect.getsource(public) if inspect.isclass(public) else ""  # attributes that a constructor sets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_on_a_page_exist(page: Path) -> None:
    assert missing(page.read_text("utf-8")) == []


def test_unknown_names_are_found() -> None:
    assert missing("`Tokenizer.encode` and `Tokenizer.encodes`") == ["Tokenizer.encodes"]
