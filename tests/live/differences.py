"""Differences from vLLM alone that are known, each with who is right."""

from __future__ import annotations

from typing import Any

NAMED = (
    "A named tool: tokenweir shows the model that tool alone, and lets it write JSON. vLLM shows it all tools, and a call that is cut "
    "stays text in a whole answer there. No interface defines what the model sees."
)
NONE = "`tool_choice` none: tokenweir shows the model no tools. vLLM shows them, unless it runs with an option against that."
REQUIRED = "A call that must come: tokenweir lets the model write JSON, vLLM the markup of the style. The call is the same, its ids are not."
THINKING = "`reasoning_tokens`: tokenweir counts the tag that ends the thinking. vLLM does not, and counts one less where it streams."

BLANK = "White space in front of a call: vLLM streams it, and leaves it out of whole answers. tokenweir leaves it out of both."
ECHO = "`echo` in a stream: vLLM adds the prompt's ids, which were not asked for."
USAGE = ("usage.prompt", "usage.completion")


def explained(way: str, name: str, field: str, theirs: Any, ours: Any) -> str | None:
    """Return why a field of an answer differs from vLLM's; None if that is not known.

    Args:
        way: "in front" or "inside".
        name: The name of the request.
        field: The name of the field.
        theirs: What vLLM alone gives.
        ours: What tokenweir gives.

    """
    if ", thinking" in name and field == "usage.reasoning" and 1 <= ours - theirs <= 2:
        return THINKING
    if ", tools, named," in name and field in ("calls", "ids", "prompt_ids", "text", "finish", *USAGE):
        return NAMED
    if ", tools, none," in name and field in ("ids", "prompt_ids", "text", "finish", *USAGE):
        return NONE
    if (", tools, required," in name or ", tools, any," in name) and field in ("ids", "usage.completion"):
        return REQUIRED
    if ", tools, auto," in name and field == "text" and ours == "" and theirs.isspace():
        return BLANK
    if ", echo" in name and field == "prompt_ids" and ours is None:
        return ECHO
    return None
