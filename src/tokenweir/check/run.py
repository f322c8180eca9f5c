"""All checks of a chat template."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tokenweir.check.control import begin_token, end_token, spelled_tokens
from tokenweir.check.model import Finding, Model, assistant, user
from tokenweir.check.reading import reads_back
from tokenweir.check.styles import styles
from tokenweir.check.turns import contents, roles, stable_prefixes, tied_results
from tokenweir.encode.errors import TemplateError


def run_checks(model: Model) -> Iterator[Finding]:
    """Yield the findings about a template; only the first one, a fault, if it does not render a conversation."""
    messages = [user(), assistant(), user()]
    try:
        model.prompt(*messages, generation=True)
    except TemplateError as error:
        model = replace(model, needs_tools=True)
        if model.text(*messages, generation=True) is None:
            yield Finding("renders", "fault", "the template refuses a plain conversation", str(error))
            return
        yield Finding("renders", "note", "the template refuses a conversation without tools", str(error))
    else:
        yield Finding("renders", "ok", "a plain conversation")
    for check in (
        styles,
        reads_back,
        stable_prefixes,
        spelled_tokens,
        begin_token,
        end_token,
        tied_results,
        contents,
        roles,
    ):
        yield from check(model)
