"""Fields that requests of several interfaces have, and their effect on the template."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

StopString = Annotated[str, Meta(min_length=1, max_length=1000)]
"""A stop string; looking for it takes some 300 bytes of memory a character."""


ThinkingBudget = Annotated[int, Meta(ge=0, le=(1 << 31) - 1)]
"""The most tokens of thinking; 0 asks for an answer without thinking."""


def effort_kwargs(effort: str | None) -> dict[str, Any]:
    """Return the template variables that express an effort of thinking; an empty dict if `effort` is None.

    `"none"` turns thinking off, all other efforts turn it on.
    """
    if effort is None:
        return {}
    if effort == "none":
        return {"enable_thinking": False, "thinking": False}
    return {"enable_thinking": True, "thinking": True, "reasoning_effort": effort}
