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
    """The capabilities of a template; each is found when it is first asked for."""

    def __init__(
        self, template: Template, source: str, special_tokens: Mapping[str, str], clock: Callable[[], datetime]
    ) -> None:
        self._template = template
        self._source = source
        self._special_tokens = special_tokens
        self._clock = clock

    @cached_property
    def argument_form(self) -> ArgumentForm:
        """The form in which the template takes the arguments of calls."""
        return self._template.argument_form

    @cached_property
    def content_format(self) -> Literal["parts", "string"]:
        """The form of a user's content. A template may loop over that of another role, and take this for a string."""
        if not self._template.iterates_over_content:
            return "string"
        part = {"type": "text", "text": "?"}
        parts, string = (self._written({"role": "user", "content": content}) for content in ([part], "?"))
        refused = string is not None and (parts is None or str(part) in parts)
        return "string" if refused else "parts"

    @cached_property
    def leaves_out_calls(self) -> bool:
        """Whether the template writes calls only where a message's content is None, and not where it is empty."""
        return _NAME in self._call(None) and _NAME not in self._call("")

    @cached_property
    def takes_later_system(self) -> bool:
        """Whether the template writes a system message behind others, in its place."""
        said = [_turn(role, text) for role, text in zip(("system", "user", "assistant", "user"), _SAID, strict=True)]
        written = self._written(*said, _turn("system", _LATER)) or ""
        places = [written.find(text) for text in (*_SAID, _LATER)]
        return -1 not in places and places == sorted(places) and written.count(_LATER) == 1

    @cached_property
    def is_prefix_stable(self) -> bool:
        """Whether a conversation's text stays as it is when a user's message or a call's result follows an answer with thinking."""
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
        """The form of a call's id, where the template writes that in place of the function's name; or an empty text."""
        if _ID not in (written := self._call("")) or _NAME in written:
            return ""
        style = shown_tools(self._source)
        return TOOL_STYLES[style].call_ids if style else ""

    @cached_property
    def shown(self) -> str:
        """The source, and the text of a call with its tools: some templates build their markup of parts."""
        return f"{self._source}\0{self._call('', tools=[_TOOL], reasoning_content='...', thinking='...')}"

    def _call(self, content: str | None, tools: list[dict[str, Any]] | None = None, **fields: str) -> str:
        """The text of a call beside some content; empty if the template refuses it."""
        return self._written({"role": "user", "content": "?"}, self._calling(content) | fields, tools=tools) or ""

    def _calling(self, content: str | None) -> Message:
        """A message with a call beside some content."""
        arguments = '{"a": "b"}' if self.argument_form == "text" else {"a": "b"}
        call = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": arguments}}
        return {"role": "assistant", "content": content, "tool_calls": [call]}

    def _grows(self, messages: list[Message], later: Message, tools: list[dict[str, Any]] | None = None) -> bool:
        """Whether the texts of the first messages are beginnings of the text with a later one."""
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
        """The text of some messages; None if the template refuses them."""
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
