"""Tables of styles, and styles by name: their own, or that of a family of models."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def read_table(file: str) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Read a table of styles beside this module.

    Args:
        file: The name of the file.

    Returns:
        The fields of each style by the style's name, and the style's name by each name of a family of models. A style
        with `like` takes the fields that it lacks from the row of that name.

    """
    table = tomllib.loads(Path(__file__).with_name(file).read_text("utf-8"))
    rows = {row["name"]: row for row in table["style"]}
    return {name: rows.get(row.pop("like", ""), {}) | row for name, row in rows.items()}, table["families"]


def named_style(name: str, kind: str, styles: Mapping[str, T], families: Mapping[str, str]) -> T:
    """Look up a style by its name or that of a family of models; case and `_` for `-` make no difference.

    Args:
        name: The style's name, or a family's.
        kind: The noun for such a style in error messages.
        styles: The styles by their names.
        families: For each name of a family the name of its style.

    Raises:
        TypeError: The name is no string.
        ValueError: No style has the name; the message lists those that exist.

    """
    if not isinstance(name, str):
        raise TypeError(
            f"a {kind} is given by its name or as an object of its own, not as {type(name).__name__} {name!r:.80}"
        )
    key = name.lower().replace("_", "-")
    found = styles.get(families.get(key, key))
    if found is None:
        raise ValueError(f"unknown {kind} {name!r}; known are {', '.join([*styles, *families])}")
    return found
