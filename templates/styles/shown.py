"""Detection of the styles of thinking and of tool calls in a template."""

from __future__ import annotations

from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import MESSAGES, STYLES, ReasoningStyle
from tokenweir.templates.styles.tools import TOOL_STYLES, tool_style_of


def shown_reasoning(text: str) -> str | None:
    """Name the style that a template's text shows: a mark of it stands there, and a wrapper if it shares its tags."""
    return next((style.name for style in STYLES.values() if _shows(text, style)), None)


def content_tags(source: str) -> tuple[str, ...]:
    """Return the tags that the template may look for in an assistant's content, to cut old thinking away."""
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
    """Return the texts that show a style in a template: its two control tokens, or its tags."""
    return style.tokens if len(style.tokens) == 2 else style.openers + style.closers


def shown_tools(text: str) -> str | None:
    """Name the style that a template's text shows: an opening text stands there, and nothing of another style."""
    for style in TOOL_STYLES.values():
        shown = all(mark in text for mark in style.shows) if style.shows else any(mark in text for mark in style.opens)
        if shown and not any(mark in text for mark in style.unlike):
            return style.name
    return None


def style_of_answer(shown: str | ToolStyle | None, tools: object) -> str | ToolStyle | None:
    """Choose how to look for calls in an answer.

    Args:
        shown: The style that the template shows.
        tools: The request's tools.

    Returns:
        The style, "auto" where none is shown. Without tools None, unless every answer of the style has markup.

    """
    if tools:
        return shown or "auto"
    return shown if shown is not None and tool_style_of(shown).answers else None
