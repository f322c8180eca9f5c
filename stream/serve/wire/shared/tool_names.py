"""Names and arguments of tools as the model sees them."""

from __future__ import annotations

import json
from typing import Any

from msgspec import UnsetType

CUSTOM_INPUT = "input"
"""The argument of the function that a custom tool becomes."""


def joined_name(name: str, namespace: str | None | UnsetType) -> str:
    """Return the name of a function as the model sees it: behind the namespace, if it has one, and two underscores."""
    if not namespace:
        return name
    return f"{namespace}{name}" if namespace.endswith("__") else f"{namespace}__{name}"


def function_definition(name: str | None, description: str | None, parameters: dict[str, Any] | None) -> dict[str, Any]:
    """Return a function in the form that chat templates take; without `parameters` it has no arguments."""
    parameters = parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "description": description or "", "parameters": parameters}}


def custom_arguments(text: str) -> str:
    """Return the arguments, as JSON text, of a custom tool's call with this input."""
    return json.dumps({CUSTOM_INPUT: text}, ensure_ascii=False)
