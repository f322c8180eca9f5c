"""Capabilities of a template, found in its syntax tree or by rendering small conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from tokenweir.encode.errors import TemplateError
from tokenweir.templates._native import Template
from tokenweir.templates.messages import Message
from tokenweir.templates.styles.shown import shown_tools
from tokenweir.templates.styles.tools import TOOL_STYLES

_NAME, _ID = "called_name", "idofcall0"  # of a call; some templates want nine letters in an id
_SAID, _LATER = ("the first text", "the second text", "the third text", "the fourth text"), "the later text"
_TOOL = {
    "type": "function",
    "function": {
        "name": _NAME,
        "description": "",
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "description": ""}}},
    },
}

ArgumentForm = Literal["object", "text", "either"]


def _turn(role: str, content: str) -> Message:
    return {"role": role, "content": content}


class TemplateCapabilities:
    """The forms of input that a template takes, and other properties; each is determined when it is first read."""

    def __init__(
        self, template: Template, source: str, special_tokens: Mapping[str, str], clock: Callable[[], datetime]
    ) -> None:
        self._template = template
        self._source = source
        self._special_tokens = special_tokens
        self._clock = clock

    @cached_property
    def argument_form(self) -> ArgumentForm:
        """The form in which the template takes the arguments of tool calls: "object", "text" (JSON) or "either"."""
        return self._template.argument_form

    @cached_property
    def content_format(self) -> Literal["parts", "string"]:
        """The form in which the template takes a user message's content: "parts" (a list) or "string".

        It is "string" also if the template loops over the content of other roles' messages only.
        """
        if not self._template.iterates_over_content:
            return "string"
        part = {"type": "text", "text": "?"}
        parts, string = (self._written({"role": "user", "content": content}) for content in ([part], "?"))
        refused = string is not None and (parts is None or str(part) in parts)
        return "string" if refused else "parts"

    @cached_property
    def leaves_out_calls(self) -> bool:
        """Whether the template writes a message's tool calls if its content is None, but omits them if it is empty."""
        return _NAME in self._call(None) and _NAME not in self._call("")

    @cached_property
    def takes_later_system(self) -> bool:
        """Whether the template writes a system message that follows other messages, at its place among them."""
        said = [_turn(role, text) for role, text in zip(("system", "user", "assistant", "user"), _SAID, strict=True)]
        written = self._written(*said, _turn("system", _LATER)) or ""
        places = [written.find(text) for text in (*_SAID, _LATER)]
        return -1 not in places and places == sorted(places) and written.count(_LATER) == 1

    @cached_property
    def is_prefix_stable(self) -> bool:
        """Whether a rendered conversation is a prefix of the text with one more message.

        Tested with a user message, or a tool's result, that follows an answer with thinking.
        """
        asked, later = _turn("user", _SAID[0]), _turn("user", _SAID[2])
        thinking = {"reasoning_content": _SAID[3], "thinking": _SAID[3]}
        if not self._grows([asked, _turn("assistant", _SAID[1]) | thinking], later):
            return False
        if _NAME not in self._call(""):
            return True
        result = _turn("tool", _SAID[2]) | {"tool_call_id": _ID, "name": _NAME}
        return self._grows([asked, self._calling("") | thinking], result, tools=[_TOOL])

    @cached_property
    def call_ids(self) -> str:
        """The pattern of a tool call's id, with `{name}` and `{number}`, if the template writes only ids and no names.

        An empty text for other templates.
        """
        if _ID not in (written := self._call("")) or _NAME in written:
            return ""
        style = shown_tools(self._source)
        return TOOL_STYLES[style].call_ids if style else ""

    @cached_property
    def shown(self) -> str:
        """The text to search for a style's markup: the template's source, followed by a rendered tool call.

        The call is included because some templates assemble their markup from parts.
        """
        return f"{self._source}\0{self._call('', tools=[_TOOL], reasoning_content='...', thinking='...')}"

    def _call(self, content: str | None, tools: list[dict[str, Any]] | None = None, **fields: str) -> str:
        """Render a user message and an assistant's message with a tool call; return the text, empty if it is refused.

        Args:
            content: The content of the assistant's message.
            tools: The tools to show.
            fields: Further fields of the assistant's message.

        """
        return self._written({"role": "user", "content": "?"}, self._calling(content) | fields, tools=tools) or ""

    def _calling(self, content: str | None) -> Message:
        """Return an assistant's message with this content and a tool call."""
        arguments = '{"a": "b"}' if self.argument_form == "text" else {"a": "b"}
        call = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": arguments}}
        return {"role": "assistant", "content": content, "tool_calls": [call]}

    def _grows(self, messages: list[Message], later: Message, tools: list[dict[str, Any]] | None = None) -> bool:
        """Return whether each prefix of `messages` renders to a prefix of the text of `messages` and `later`.

        Prefixes that the template refuses are not counted; False if it refuses `messages`, or all of them with `later`.
        """
        for first in ([_turn("system", _LATER)], []):  # which some templates refuse
            after = self._written(*first, *messages, later, tools=tools)
            before = [
                self._written(*first, *messages[: n + 1], tools=tools, generation=False) for n in range(len(messages))
            ]
            if after is not None and before[-1] is not None:
                return all(text is None or after.startswith(text) for text in before)
        return False

    def _written(
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
