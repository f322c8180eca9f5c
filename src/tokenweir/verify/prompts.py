"""Renders of a chat template beside those of transformers."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any
from unittest import mock

from tokenweir.encode.errors import TokenweirError
from tokenweir.templates.chat_template import ChatTemplate
from tokenweir.verify.comparison import Difference
from tokenweir.verify.texts import Conversation

CLOCK = datetime(2026, 11, 20, 9, 30, 15, 250)
"""The time that templates of both libraries see."""
MOST_RENDERS = 2000
"""Renders that the search for a small example takes at most."""
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class _Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return CLOCK


class TransformersTemplate:
    """A chat template as transformers renders it, at the time of `CLOCK`."""

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        self._module: Any = import_module("transformers.utils.chat_template_utils")
        self._source = source
        self._special_tokens = special_tokens
        self.library = f"transformers {import_module('transformers').__version__}"

    def render(self, messages: Sequence[Any], variables: Mapping[str, Any]) -> str:
        """Render a conversation as `apply_chat_template` does; raise what the template raises."""
        given = {
            "add_generation_prompt": not variables.get("continue_final_message"),
            **self._special_tokens,
            **variables,
        }
        module = self._module
        with mock.patch.object(module, "datetime", _Clock), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes, which Python warns of and Jinja takes
            normalized = module._normalize_chat_messages(copy.deepcopy(list(messages)))
            (text,), _ = module.render_jinja_template([normalized], chat_template=self._source, **given)
        return str(text)


def in_taken_form(template: ChatTemplate, messages: Sequence[Any]) -> list[Any]:
    """Return messages in the form that the template gets them in from `ChatTemplate.render`.

    Parts are joined where the template does not loop over them. Arguments of calls are text where it takes nothing else, and
    objects where it does not take text.
    """
    taken = copy.deepcopy(list(messages))
    for message in taken:
        if not isinstance(message, dict):
            continue
        for call in message.get("tool_calls") or ():
            function = call.get("function", call) if isinstance(call, dict) else {}
            arguments = function.get("arguments")
            if template.argument_form == "text" and isinstance(arguments, dict):
                function["arguments"] = json.dumps(arguments, ensure_ascii=False)
            elif template.argument_form == "object" and isinstance(arguments, str):
                try:
                    function["arguments"] = json.loads(arguments)
                except ValueError:
                    pass
        content = message.get("content")
        if template.content_format == "string" and isinstance(content, list):
            texts = [part.get("text") for part in content if isinstance(part, dict)]
            if len(texts) == len(content) and all(isinstance(text, str) for text in texts):
                message["content"] = "\n".join(map(str, texts))
    return taken


def render_difference(
    template: ChatTemplate, reference: TransformersTemplate, conversation: Conversation
) -> Difference | None:
    """Render a conversation by both; return how the texts differ, or None if both are equal or both refuse.

    The template's clock must return `CLOCK`.
    """
    messages, variables = conversation
    try:
        theirs: str | _Refusal = reference.render(in_taken_form(template, messages), variables)
    except Exception as error:  # noqa: BLE001 - a template may raise any error of Python
        theirs = _Refusal(f"{type(error).__name__}: {error}")
    try:
        ours: str | _Refusal = template.render(messages, **variables).text
    except TokenweirError as error:
        ours = _Refusal(str(error))
    if ours == theirs or (isinstance(ours, _Refusal) and isinstance(theirs, _Refusal)):
        return None
    return Difference("render", conversation, ours, theirs)


class _Refusal:
    """A result in place of a text: the error that a library raised."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"refused ({self.reason})"


def shrunk_render(template: ChatTemplate, reference: TransformersTemplate, difference: Difference) -> Difference:
    """Return a difference of the same kind on a smaller conversation.

    Messages, fields and halves of texts are left out one by one, in at most `MOST_RENDERS` renders.
    """
    kind, renders = _kind(difference), 0
    shrinking = True
    while shrinking:
        shrinking = False
        messages, variables = difference.given
        candidates = [Conversation(less, variables) for less in _smaller(messages)]
        candidates += [Conversation(messages, less) for less in _smaller(variables)]
        for candidate in candidates:
            renders += 1
            if renders > MOST_RENDERS:
                return difference
            found = render_difference(template, reference, candidate)
            if found is not None and _kind(found) == kind:
                difference, shrinking = found, True
                break
    return difference


def _kind(difference: Difference) -> tuple[str | None, bool]:
    """Return the words of our refusal without numbers, and whether the reference refused."""
    ours, theirs = difference.ours, difference.theirs
    return (
        ours.reason.translate(_WITHOUT_DIGITS) if isinstance(ours, _Refusal) else None,
        isinstance(theirs, _Refusal),
    )


def _smaller(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value that lack one of its items, fields or halves of texts."""
    if isinstance(value, str):
        half = len(value) // 2
        yield from (value[:half], value[half:]) if half else ()
    elif isinstance(value, list | dict):
        keys = range(len(value)) if isinstance(value, list) else value
        pairs = [(key, value[key]) for key in keys]
        make: Callable[[Any], Any] = dict if isinstance(value, dict) else (lambda items: [item for _, item in items])
        yield from (make(pairs[:i] + pairs[i + 1 :]) for i in range(len(pairs)))
        for i, (key, item) in enumerate(pairs):
            yield from (make([*pairs[:i], (key, less), *pairs[i + 1 :]]) for less in _smaller(item))
