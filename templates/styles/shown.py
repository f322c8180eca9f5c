"""Detection of the styles of thinking and of tool calls in a template."""

from __future__ import annotations

from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import MESSAGES, STYLES, ReasoningStyle
from tokenweir.templates.styles.tools import TOOL_STYLES, tool_style_of


def shown_reasoning(text: str) -> str | None:
    """Return the name of the first style of thinking whose tags a template's text has, or None.

    A style with an envelope must show that, too. Its `shows` and `unlike` decide if they are given.
    """
    return next((style.name for style in STYLES.values() if _shows(text, style)), None)


def content_tags(source: str) -> tuple[str, ...]:
    """Return the thinking tags that a template's source has; templates search contents for them, to remove old thinking."""
    # Thinking that is a message of its own is a field of its own for templates, too.
    styles = (style for style in STYLES.values() if style.name not in (*MESSAGES, "solar-open"))
    styles = (style for style in styles if not style.shows or _shows(source, style))
    return tuple(dict.fromkeys(mark for style in styles for mark in _marks(style) if mark in source))


def _shows(source: str, style: ReasoningStyle) -> bool:
    if any(text in source for text in style.unlike):
        return False
    if style.shows:
        return all(text in source for text in style.shows)
    wrapped = not style.envelope or any(text.strip() in source for text in style.envelope)
    return wrapped and any(mark in source for mark in _marks(style))


def _marks(style: ReasoningStyle) -> tuple[str, ...]:
    """Return the texts by which a template shows a style: its control tokens if it has two, otherwise all of its tags."""
    return style.tokens if len(style.tokens) == 2 else style.openers + style.closers


def shown_tools(text: str) -> str | None:
    """Return the name of the first style of tool calls whose opening text a template's text has, or None.

    A style's `shows` and `unlike` decide if they are given.
    """
    for style in TOOL_STYLES.values():
        shown = all(mark in text for mark in style.shows) if style.shows else any(mark in text for mark in style.opens)
        if shown and not any(mark in text for mark in style.unlike):
            return style.name
    return None


def style_of_answer(shown: str | ToolStyle | None, tools: object) -> str | ToolStyle | None:
    """Choose the style by which an answer is searched for tool calls.

    Args:
        shown: The style that the template shows, or None.
        tools: The request's tools.

    Returns:
        With tools: `shown`, or "auto" if it is None. Without tools: None, so that no calls are searched for; but `shown` if
        the style also marks plain answers (`ToolStyle.answers`).

    """
    if tools:
        return shown or "auto"
    return shown if shown is not None and tool_style_of(shown).answers else None
