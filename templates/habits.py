"""What a template does with messages, found by having it render small ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from tokenweir.encode.errors import TemplateError
from tokenweir.templates.compiled_template import CompiledTemplate
from tokenweir.templates.messages import Message
from tokenweir.templates.styles.shown import shown_tools
from tokenweir.templates.styles.tools import TOOL_STYLES

_NAME, _ID = "called_name", "idofcall0"  # of a call; some templates want nine letters in an id
_TOOL = {
    "type": "function",
    "function": {
        "name": _NAME,
        "description": "",
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "description": ""}}},
    },
}


class Habits:
    """The habits of a template; each is found when it is first asked for."""

    def __init__(
        self, compiled: CompiledTemplate, special_tokens: Mapping[str, str], clock: Callable[[], datetime]
    ) -> None:
        self._compiled = compiled
        self._special_tokens = special_tokens
        self._clock = clock

    @cached_property
    def content_format(self) -> Literal["parts", "string"]:
        """Whether it takes a user's content as parts; one may loop over that of another role, and take this for a string."""
        if not self._compiled.iterates_over_content:
            return "string"
        part = {"type": "text", "text": "?"}
        parts, string = (self._written({"role": "user", "content": content}) for content in ([part], "?"))
        refused = string is not None and (parts is None or str(part) in parts)
        return "string" if refused else "parts"

    @cached_property
    def leaves_out_calls(self) -> bool:
        """Whether it writes calls only where a message's content is None, and not where it is empty."""
        return _NAME in self._call(None) and _NAME not in self._call("")

    @cached_property
    def call_ids(self) -> str:
        """The form of a call's id, where it writes that in the place of the function's name; or an empty text."""
        if _ID not in (written := self._call("")) or _NAME in written:
            return ""
        style = shown_tools(self._compiled.source)
        return TOOL_STYLES[style].call_ids if style else ""

    @cached_property
    def shown(self) -> str:
        """The source, and what it writes of a call with its tools: some templates build their markup of parts."""
        return f"{self._compiled.source}\0{self._call('', tools=[_TOOL], reasoning_content='...', thinking='...')}"

    def _call(self, content: str | None, tools: list[dict[str, Any]] | None = None, **fields: str) -> str:
        """What it writes of a call beside some content; nothing if it refuses it."""
        arguments = '{"a": "b"}' if self._compiled.argument_form == "text" else {"a": "b"}
        call = {"id": _ID, "type": "function", "function": {"name": _NAME, "arguments": arguments}}
        turn = {"role": "assistant", "content": content, "tool_calls": [call], **fields}
        return self._written({"role": "user", "content": "?"}, turn, tools=tools) or ""

    def _written(self, *messages: Message, tools: list[dict[str, Any]] | None = None) -> str | None:
        """What it writes of some messages; None if it refuses them."""
        variables = {
            "bos_token": "",
            "eos_token": "",
            **self._special_tokens,
            "strftime_now": self._clock().strftime,
            "add_generation_prompt": True,
            "tools": tools,
            "documents": None,
        }
        try:
            return self._compiled.render(list(messages), variables)
        except TemplateError:
            return None
