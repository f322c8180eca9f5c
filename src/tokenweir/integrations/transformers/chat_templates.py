"""Chat templates of transformers, rendered by tokenweir's engine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from tokenweir.encode.errors import TemplateError, TextError
from tokenweir.integrations.counts import count
from tokenweir.templates._native import Rendering, Template

MAX_TEMPLATES = 128
"""The most compiled templates that are cached; as many as transformers caches."""

NAME_LENGTH = 40
"""The characters of a template that stand for it in `report()`."""


class CompiledTemplate:
    """Drop-in replacement of a compiled `jinja2.Template`, with the methods that transformers calls.

    If tokenweir's engine fails to compile or render it, also by an error of the template itself, Jinja2 renders it or
    raises the error.
    """

    def __init__(self, source: str, original: Callable[[str], Any]) -> None:
        """Compile a template.

        Args:
            source: The source of the template.
            original: The function of transformers that compiles a source by Jinja2.

        """
        self._source = source
        self._compile = original
        self._name = " ".join(source[: 4 * NAME_LENGTH].split())[:NAME_LENGTH]
        self._refused = ""
        self._template: Template | None = None
        try:
            self._template = Template(source)
        except TemplateError as error:
            self._refused = str(error)

    def rendering(self, call: str, variables: dict[str, Any]) -> Rendering | None:
        """Render by tokenweir's engine; return None if Jinja2 has to render instead. Counts the call for `report()`.

        Args:
            call: The name of the call in `report()`.
            variables: The template's variables.

        """
        reason = self._refused
        if self._template is not None:
            try:
                found = self._template.render(variables, now=datetime.now())
            except (TemplateError, TextError, TypeError, ValueError) as error:
                reason = str(error)
            else:
                count(self._name, call)
                return found
        count(self._name, call, reason)
        return None

    def render(self, **variables: Any) -> str:
        """Render the template with these variables; return the text."""
        if (found := self.rendering("render", variables)) is not None:
            return found.text
        text: str = self._compile(self._source).render(**variables)
        return text

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compile(self._source), name)


def compiler(original: Callable[[str], Any]) -> Callable[[str], CompiledTemplate]:
    """Return a cached function that compiles a source to a `CompiledTemplate`.

    It replaces `original`, the function of transformers that compiles a source by Jinja2.
    """
    return lru_cache(maxsize=MAX_TEMPLATES)(lambda source: CompiledTemplate(source, original))


def indices_renderer(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that renders a template; it returns the text and the character ranges of `{% generation %}` blocks.

    It replaces `original`, the function of transformers that does so, and calls it for templates that Jinja2 has to render.
    """

    def render_with_assistant_indices(
        compiled_template: Any, messages: Any, tools: Any, documents: Any, add_generation_prompt: Any, **variables: Any
    ) -> tuple[str, list[tuple[int, int]]]:
        given = {
            "messages": messages,
            "tools": tools,
            "documents": documents,
            "add_generation_prompt": add_generation_prompt,
            **variables,
        }
        if isinstance(compiled_template, CompiledTemplate):
            if (found := compiled_template.rendering("render with generation", given)) is not None:
                return found.text, found.character_generation
            compiled_template = compiled_template._compile(compiled_template._source)
        there: tuple[str, list[tuple[int, int]]] = original(compiled_template, **given)
        return there

    return render_with_assistant_indices
