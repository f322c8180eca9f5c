"""The Python examples of a page, which tests run."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any


def examples(page: Path, kind: str) -> str:
    """The code of a page's examples, each at its own line, so that a traceback names the place on the page."""
    text = page.read_text("utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in re.finditer(rf"^```{re.escape(kind)}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        first = text.count("\n", 0, block.start(1))
        code = block[1].splitlines()
        lines[first : first + len(code)] = code
    return "\n".join(lines)


def run(page: Path, kind: str = "python", **replaced: str) -> dict[str, Any]:
    """Run a page's examples in one namespace, which is returned; `await` may stand at the top, as inside a `main`.

    Args:
        page: The page.
        kind: "python" for examples that run anywhere, "{code-block} python" for the others.
        replaced: What stands on this machine in place of texts of the page, such as addresses and paths.

    """
    code = examples(page, kind)
    assert code.strip()
    for there, here in replaced.items():
        assert there in code
        code = code.replace(there, here)
    names: dict[str, Any] = {"__name__": "__main__"}
    done = eval(compile(code, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if inspect.iscoroutine(done):
        asyncio.run(done)
    return names
