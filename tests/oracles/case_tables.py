"""Tables of cases that stand in the `cases.toml` beside a test file.

TOML has no null: the text `<null>` stands for None.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _read(path: Path) -> dict[str, Any]:
    return {name: _with_none(table) for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def _with_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_none(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_none(each) for each in value]
    return None if value == "<null>" else value


def cases(test_file: str) -> dict[str, Any]:
    """Return the tables of a test file, by name; call it with `__file__`."""
    path = Path(test_file)
    return _read(path.with_name("cases.toml"))[path.stem]
