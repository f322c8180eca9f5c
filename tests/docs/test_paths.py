"""Files, folders and tests that documents and comments name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("bench", "demos", "docs", "encode", "gpu", "scripts", "src", "stream", "templates", "tests")
PAGES = [page for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if page.name != "CHANGELOG.md"]
_PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]*)")
_FILE = re.compile(
    rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./-]+\.(?:py|cuh?)\b"
)  # headers are named from encode/core
_TEST = re.compile(r"`(test_\w+\.py)`")
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_and_link_leads_somewhere(page):
    text = page.read_text("utf-8")
    missing = [path for path in _PATH.findall(text) if not (ROOT / path).exists()]
    missing += [name for name in _TEST.findall(text) if not [*(ROOT / "tests").rglob(name)]]
    missing += [link for link in _LINK.findall(text) if not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_that_a_source_names_is_there(folder):
    sources = [
        path for ending in ("py", "h", "cpp", "cu", "cuh", "js") for path in (ROOT / folder).rglob(f"*.{ending}")
    ]
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources
        if not path.is_symlink() and ROOT / "tests" / "peers" not in path.parents  # names files of other projects
        for name in _FILE.findall(path.read_text("utf-8"))
        if not (ROOT / name).exists()
    }
    assert not missing


def test_paths_are_found_in_text():
    assert _PATH.findall("in `encode/core/base/utf8.h` and `scripts/bench encode`") == [
        "encode/core/base/utf8.h",
        "scripts/bench",
    ]
