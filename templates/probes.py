"""Small conversations that show by their renders in which form a template takes its input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template
from tokenweir.templates.messages import Message

NAME, ID = "called_name", "idofcall0"  # of a call; some templates want nine letters in an id
SAID, LATER = ("the first text", "the second text", "the third text", "the fourth text"), "the later text"
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": NAME,
        "description": "",
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "description": ""}}},
    },
}

ArgumentForm = Literal["object", "text", "either"]


def turn(role: str, content: Any) -> Message:
    """Return a message with this role and content."""
    return {"role": role, "content": content}


class Probe:
    """Renders of made-up conversations by one template."""

    def __init__(self, template: Template, special_tokens: Mapping[str, str], clock: Callable[[], datetime]) -> None:
        self._template = template
        self._special_tokens = special_tokens
        self._clock = clock

    def calling(self, **fields: Any) -> Message:
        """Return an assistant's message with a tool call and these fields."""
        arguments = '{"a": "b"}' if self._template.argument_form == "text" else {"a": "b"}
        call = {"id": ID, "type": "function", "function": {"name": NAME, "arguments": arguments}}
        return {"role": "assistant", **fields, "tool_calls": [call]}

    def call(self, *, tools: list[dict[str, Any]] | None = None, **fields: Any) -> str:
        """Render a user message and an assistant's message with a tool call; return the text, empty if it is refused.

        Args:
            tools: The tools to show.
            fields: Further fields of the assistant's message, such as `content`.

        """
        return self.written(turn("user", "?"), self.calling(**fields), tools=tools) or ""

    def grows(self, messages: list[Message], later: Message, tools: list[dict[str, Any]] | None = None) -> bool:
        """Return whether each prefix of `messages` renders to a prefix of the text of `messages` and `later`.

        Prefixes that the template refuses are not counted; False if it refuses `messages`, or all of them with `later`.
        """
        for first in ([turn("system", LATER)], []):  # which some templates refuse
            after = self.written(*first, *messages, later, tools=tools)
            before = [
                self.written(*first, *messages[: n + 1], tools=tools, generation=False) for n in range(len(messages))
            ]
            if after is not None and before[-1] is not None:
                return all(text is None or after.startswith(text) for text in before)
        return False

    def written(
        self, *messages: Message, tools: list[dict[str, Any]] | None = None, generation: bool = True
    ) -> str | None:
        """Render messages; return the text, or None if the template refuses them.

        `generation` is the variable `add_generation_prompt`.
        """
        variables = {
            "bos_token": "",
            "eos_token": "",
            **self._special_tokens,
            "add_generation_prompt": generation,
            "tools": tools,
            "documents": None,
            "messages": list(messages),
        }
        try:
            return self._template.render(variables, now=self._clock()).text
        except TemplateError:
            return None
