"""A chat template's source, compiled for each of the ways in which it is rendered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

import jinja2
from jinja2 import nodes

from tokenweir.encode.errors import TemplateError
from tokenweir.templates import analysis, limits
from tokenweir.templates.continuation import append_tag, cut_at_tag
from tokenweir.templates.environment import (
    GENERATION_BEGINS,
    GENERATION_ENDS,
    ChatEnvironment,
    GenerationEnvironment,
    as_template_error,
    compile_tree,
)
from tokenweir.templates.marked_environment import MarkedEnvironment
from tokenweir.templates.messages import Message

_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")


class CompiledTemplate:
    """A source that renders within bounds; each of the other ways is compiled when it is first needed.

    Attributes:
        source: The Jinja source.
        filename: What errors call it.
        variables: The variables that it reads.
        iterates_over_content: It loops over content parts.
        argument_form: In which form it takes the arguments of calls.
        marks_generation: It says by `{% generation %}` what a model generates.
        literals: The texts that it writes itself.

    """

    def __init__(self, source: str, filename: str) -> None:
        """Compile a source.

        Args:
            source: The Jinja source.
            filename: What errors call it.

        Raises:
            TemplateError: The source is too long or not valid.

        """
        if len(source) > limits.MAX_SOURCE:
            raise TemplateError(f"{filename} is longer than {limits.MAX_SOURCE} characters")
        self.source = source
        self.filename = filename
        try:
            tree = _environment().parse(source)
            parts = list(tree.find_all(nodes.Node))
            limits.check_branches(*analysis.branches(parts))
            self.iterates_over_content = analysis.iterates_over_content(tree)
            self.argument_form = analysis.argument_form(tree)
            self.marks_generation = _GENERATION.search(source) is not None
            self.literals = analysis.literals(parts)
            self._template, variables = compile_tree(_environment(), tree, filename)
            self.variables = frozenset(variables - {"strftime_now"})
        except Exception as error:  # Jinja and the Python compiler can fail in many ways
            raise as_template_error(error, filename) from error

    def render(self, conversation: list[Message], variables: Mapping[str, Any], field: str | None = None) -> str:
        """The text of a conversation, which may be changed; it ends inside the last message's `field` if there is one."""
        return self._run(self._template, conversation, variables, field)

    def render_marked(self, conversation: list[Message], variables: Mapping[str, Any], field: str | None) -> str:
        """The same of a conversation whose user text is marked: the template does not see the marks."""
        return self._run(self._blind, conversation, variables, field)

    def generated(
        self, plain: str, conversation: list[Message], variables: Mapping[str, Any]
    ) -> tuple[tuple[int, int], ...]:
        """The stretches of a rendered text that the template marks, by a rendering that shows them.

        Raises:
            TemplateError: The template looks into what it generates.

        """
        stretches: list[tuple[int, int]] = []
        parts: list[str] = []
        length, open_at, depth = 0, 0, 0
        shown = self._run(self._showing, conversation, variables, None)
        for part in re.split(f"([{GENERATION_BEGINS}{GENERATION_ENDS}])", shown):
            if part == GENERATION_BEGINS:
                open_at = open_at if depth else length
                depth += 1
            elif part == GENERATION_ENDS:
                depth -= 1
                if depth == 0 and open_at < length:
                    stretches.append((open_at, length))
            else:
                parts.append(part)
                length += len(part)
        if depth or "".join(parts) != plain:
            raise TemplateError(
                f"{self.filename} looks into what it generates, so it cannot be told where that ends up"
            )
        return tuple(stretches)

    @cached_property
    def _showing(self) -> jinja2.Template:
        """The template that shows what it marks as generated."""
        return self._compiled_in(_generation_environment())

    @cached_property
    def _blind(self) -> jinja2.Template:
        """The template that does not see marks."""
        return self._compiled_in(_marked_environment())

    def _compiled_in(self, environment: ChatEnvironment) -> jinja2.Template:
        try:
            return compile_tree(environment, environment.parse(self.source), self.filename)[0]
        except Exception as error:
            raise as_template_error(error, self.filename) from error

    def _run(
        self, template: jinja2.Template, conversation: list[Message], variables: Mapping[str, Any], field: str | None
    ) -> str:
        if field is not None:
            final = append_tag(conversation, field, self.source)
        try:
            with limits.budget():
                text = _render(template, {**variables, "messages": conversation})
        except Exception as error:  # a template can raise anything
            raise as_template_error(error, self.filename) from error
        return text if field is None else cut_at_tag(text, final)


def _render(template: jinja2.Template, variables: dict[str, Any]) -> str:
    """As the method of Jinja's, but a macro does not keep the variables, which it would until garbage is collected."""
    context = template.new_context(variables)
    try:
        return template.environment.concat(template.root_render_func(context))
    except Exception:  # noqa: BLE001 - it is raised again, with the places in the template
        template.environment.handle_exception()
    finally:
        context.vars.clear()


@cache
def _environment() -> ChatEnvironment:
    return ChatEnvironment()


@cache
def _generation_environment() -> GenerationEnvironment:
    return GenerationEnvironment()


@cache
def _marked_environment() -> MarkedEnvironment:
    return MarkedEnvironment()
