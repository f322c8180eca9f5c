"""Styles of thinking and of calls that a template shows."""

from __future__ import annotations

from collections.abc import Iterator

from tokenweir.check.model import Finding, Model
from tokenweir.stream.decode.parsers.detection import vocabulary_style, vocabulary_tools
from tokenweir.templates.styles.grammars import ToolStyle
from tokenweir.templates.styles.reasoning import ReasoningStyle, style_of
from tokenweir.templates.styles.response_template import reasoning_of, tool_style_of_template
from tokenweir.templates.styles.tools import tool_style_of

Style = ReasoningStyle | ToolStyle


def styles(model: Model) -> Iterator[Finding]:
    """Yield the style of thinking and that of calls, and by what they were detected."""
    template, tok = model.template, model.tokenizer
    thinking = None if template.reasoning is None else style_of(template.reasoning)
    calls = None if template.tool_style is None else tool_style_of(template.tool_style)
    by_template = reasoning_of(template.response_template), tool_style_of_template(template.response_template)
    owned = (None, None) if model.alone else (vocabulary_style(tok), vocabulary_tools(tok))
    yield _finding(model, "style of thinking", thinking, by_template[0], owned[0])
    yield _finding(model, "style of calls", calls, by_template[1], owned[1])


def _finding(model: Model, check: str, shown: Style | None, described: Style | None, owned: Style | None) -> Finding:
    """Return the style of a template.

    Args:
        model: The template, with its tokenizer.
        check: The name of the check.
        shown: The template's style.
        described: The style that its response template describes.
        owned: The style whose tags are tokens of the vocabulary.

    """
    if shown is None:
        if owned is None:
            return Finding(check, "absent", "none")
        return Finding(check, "note", f"{owned.name}, by the vocabulary alone: the template does not show it")
    marks = [mark for mark in shown.marks if mark.strip() and mark in model.template.source]
    tags = ", ".join(dict.fromkeys(marks)) or "a rendered call"
    source = f"the template's {tags}" if described is None else "the model's response template"
    tokens = [model.tokenizer.token_to_id(tag) for tag in shown.tokens]
    spelled = "control tokens" if tokens and None not in tokens else "ordinary tokens"
    return Finding(check, "ok", f"{shown.name}, by {source}; its tags are {spelled}")
