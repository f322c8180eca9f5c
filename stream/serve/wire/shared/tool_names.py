"""Names and arguments of tools as the model sees them."""

from __future__ import annotations

import json

from msgspec import UnsetType

CUSTOM_INPUT = "input"
"""The argument of the function that a custom tool becomes."""


def joined_name(name: str, namespace: str | None | UnsetType) -> str:
    """Return the name of a function as the model sees it: behind the namespace, if it has one, and two underscores."""
    if not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def custom_arguments(text: str) -> str:
    """Return the arguments, as JSON text, of a custom tool's call with this input."""
    return json.dumps({CUSTOM_INPUT: text}, ensure_ascii=False)
