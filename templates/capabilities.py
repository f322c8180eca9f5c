"""Capabilities of a template, found in its syntax tree or by rendering small conversations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Literal

from tokenweir.templates._native import HistoryForm, Template
from tokenweir.templates.history_form import history_form
from tokenweir.templates.probes import ID, LATER, NAME, SAID, TOOL, ArgumentForm, Probe, turn
from tokenweir.templates.styles.shown import shown_tools
from tokenweir.templates.styles.tools import TOOL_STYLES


class TemplateCapabilities:
    """The forms of input that a template takes, and other properties; each is determined when it is first read."""

    def __init__(
        self, template: Template, source: str, special_tokens: Mapping[str, str], clock: Callable[[], datetime]
    ) -> None:
        self._template = template
        self._source = source
        self._probe = Probe(template, special_tokens, clock)

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
        parts, string = (self._probe.written(turn("user", content)) for content in ([part], "?"))
        refused = string is not None and (parts is None or str(part) in parts)
        return "string" if refused else "parts"

    @cached_property
    def history(self) -> HistoryForm:
        """The form of histories that the template takes."""
        return history_form(self._probe, self.argument_form, self.call_ids)

    @cached_property
    def takes_later_system(self) -> bool:
        """Whether the template writes a system message that follows other messages, at its place among them."""
        said = [turn(role, text) for role, text in zip(("system", "user", "assistant", "user"), SAID, strict=True)]
        written = self._probe.written(*said, turn("system", LATER)) or ""
        places = [written.find(text) for text in (*SAID, LATER)]
        return -1 not in places and places == sorted(places) and written.count(LATER) == 1

    @cached_property
    def is_prefix_stable(self) -> bool:
        """Whether a rendered conversation is a prefix of the text with one more message.

        Tested with a user message, or a tool's result, that follows an answer with thinking.
        """
        asked, later = turn("user", SAID[0]), turn("user", SAID[2])
        thinking = {"reasoning_content": SAID[3], "thinking": SAID[3]}
        if not self._probe.grows([asked, turn("assistant", SAID[1]) | thinking], later):
            return False
        if NAME not in self._probe.call(content=""):
            return True
        result = turn("tool", SAID[2]) | {"tool_call_id": ID, "name": NAME}
        return self._probe.grows([asked, self._probe.calling(content="", **thinking)], result, tools=[TOOL])

    @cached_property
    def call_ids(self) -> str:
        """The pattern of a tool call's id, with `{name}` and `{number}`, if the template writes only ids and no names.

        Such an id carries the name of its function. An empty text for other templates.
        """
        if ID not in (written := self._probe.call(content="")) or NAME in written:
            return ""
        style = shown_tools(self._source)
        return TOOL_STYLES[style].call_ids if style else ""

    @cached_property
    def thinking_end(self) -> str:
        """The text between the thinking and the content of an answer, as the template writes them.

        An empty text if it leaves out either.
        """
        answer = turn("assistant", SAID[1]) | {"reasoning_content": SAID[0], "thinking": SAID[0]}
        written = self._probe.written(turn("user", SAID[2]), answer, generation=False) or ""
        _, thinking, behind = written.partition(SAID[0])
        end, content, _ = behind.partition(SAID[1])
        return end if thinking and content else ""

    @cached_property
    def shown(self) -> str:
        """The text to search for a style's markup: the template's source, followed by a rendered tool call.

        The call is included because some templates assemble their markup from parts.
        """
        call = self._probe.call(content="", tools=[TOOL], reasoning_content="...", thinking="...")
        return f"{self._source}\0{call}"
