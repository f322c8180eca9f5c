"""Tables of cases that stand in the `cases.toml` beside a test file."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def cases(test_file: str) -> dict[str, Any]:
    """Return the tables of a test file, by name; call it with `__file__`."""
    path = Path(test_file)
    return _read(path.with_name("cases.toml"))[path.stem]
