"""Styles by name: their own, or that of a family of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def named_style(name: str, kind: str, styles: Mapping[str, T], families: Mapping[str, str]) -> T:
    """Look up a style; case and `_` for `-` make no difference.

    Args:
        name: The style's name, or a family's.
        kind: What the error calls such a style.
        styles: The styles by their names.
        families: The names of styles by those of families.

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
