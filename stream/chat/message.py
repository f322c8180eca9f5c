"""`AssistantMessage`: the message that the deltas of an answer make up."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenweir.stream.events.deltas import Delta, Finish, ReasoningDelta, TextDelta, ToolCallDelta


class AssistantMessage:
    """Collects the deltas of one answer."""

    __slots__ = ("_broken", "_calls", "_open", "_text", "_thinking")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[tuple[ToolCallDelta, list[str]]] = []  # the first delta of each, and its arguments
        self._open = False  # the last call is not complete
        self._broken = False  # a call is malformed, or was cut short by the next one

    @classmethod
    def of(cls, deltas: Iterable[Delta]) -> AssistantMessage:
        """Collect the deltas of a whole answer."""
        message = cls()
        for delta in deltas:
            message.add(delta)
        return message

    @property
    def is_whole(self) -> bool:
        """Whether all calls so far are complete."""
        return not (self._broken or self._open)

    def add(self, delta: Delta) -> None:
        """Take the next delta."""
        match delta:
            case TextDelta():
                self._text.append(delta.text)
            case ReasoningDelta():
                self._thinking.append(delta.text)
            case ToolCallDelta():
                self._add_call(delta)
            case Finish():
                pass

    def _add_call(self, delta: ToolCallDelta) -> None:
        if delta.name:
            self._broken = self._broken or self._open
            self._open = True
            self._calls.append((delta, []))
        self._calls[-1][1].append(delta.arguments)
        if delta.malformed is not None:
            self._broken = True
        if delta.complete:
            self._open = False

    def as_dict(self) -> dict[str, Any]:
        """Return the message in OpenAI's form, as chat templates take it."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._thinking:
            message["reasoning_content"] = "".join(self._thinking)
        if self._calls:
            message["tool_calls"] = [
                {"id": first.id, "type": "function", "function": {"name": first.name, "arguments": "".join(arguments)}}
                for first, arguments in self._calls
            ]
        return message
