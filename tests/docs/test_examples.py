"""The Python examples of the documentation run: a page's blocks, in order, in one namespace of one event loop."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import socket
from contextlib import suppress
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


def run(page: Path, **replacements: str) -> dict[str, Any]:
    """Run a page's examples; `await` may stand at the top, as inside the `main` that the pages speak of.

    Args:
        page: The page.
        replacements: `old=new` in the code, such as a port.

    Returns:
        The names that the examples leave.

    """
    source = examples(page)
    for old, new in replacements.items():
        assert old in source
        source = source.replace(old, new)
    names: dict[str, Any] = {"__name__": "__main__"}
    done = eval(compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(done):
        asyncio.run(done)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run(page)


def test_the_readmes_client_reads_from_the_readmes_server(capsys):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = run(ROOT / "README.md", **{"8000": str(port)})

    async def both() -> None:
        serving = asyncio.create_task(names["serve"]())
        while True:
            await asyncio.sleep(0.05)
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
        capsys.readouterr()
        await names["ask"]()
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving

    asyncio.run(asyncio.wait_for(both(), 60))
    assert capsys.readouterr().out.strip()  # what the toy made up


def test_there_are_pages_with_examples():
    assert {"README.md", "tutorial.md", "own-engine.md", "inference-loop.md"} <= {page.name for page in PAGES}
