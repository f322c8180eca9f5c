"""`MessageBuilder`: messages for a chat template, made of a request's items or messages, of whichever interface."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta

from tokenweir.stream.serve.wire.shared.contents import Content

ChatMessage = dict[str, Any]
"""A message for a chat template: `role` and `content`, a text or parts; for the assistant perhaps `reasoning_content` and `tool_calls`, for
a tool `tool_call_id` and `name`."""


FunctionName = Annotated[str, Meta(max_length=256)]
"""The name of a called function. Each result of a call repeats it, so a long one would multiply a short request."""


class MessageBuilder:
    """Builder of messages for a chat template from a request's items, added one by one.

    Successive thinking, text and tool calls of the assistant become one message.

    Args:
        messages: Messages that come before the added ones, as this server has kept them.

    Attributes:
        messages: The messages; complete once `end` was called.

    """

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        self.messages = list(messages)
        self._continues = bool(self.messages)
        self._thinking: list[str] = []
        self._calling = False  # whether a call would belong to the last message
        calls = [call for message in self.messages for call in message.get("tool_calls", ())]
        self._names = {
            call["id"]: call["function"]["name"] for call in reversed(calls)
        }  # of two with one id, the first

    def say(self, role: str, content: Content) -> None:
        """Add a message; the role `developer` becomes `system`, which is the name that templates know."""
        if role != "assistant":
            self.end()
        self._add({"role": "system" if role == "developer" else role, "content": content})

    def think(self, text: str) -> None:
        """Add thinking of the assistant, which becomes part of its next message or tool call."""
        if text:
            self._thinking.append(text)

    def call(self, call_id: str, name: str, arguments: object) -> None:
        """Add a tool call to the assistant's message, or to a new one if the last message is not the assistant's.

        `arguments` is text, JSON if the call is whole, or another value, which becomes JSON; None is an empty object.
        """
        if self._thinking or not self._calling:
            self._add({"role": "assistant", "content": ""})
        text = (
            arguments
            if isinstance(arguments, str)
            else json.dumps({} if arguments is None else arguments, ensure_ascii=False)
        )
        function = {"name": name, "arguments": text}
        calls = self.messages[-1].setdefault("tool_calls", [])
        calls.append({"id": call_id, "type": "function", "function": function})
        self._names.setdefault(call_id, name)

    def answer(self, call_id: str | None, output: Content, name: str | None = None) -> None:
        """Add the result of the tool call with this id.

        A result whose call was not added, as after a compaction of the history, has the name that is given, or none. Raise
        `LookupError` for one behind messages that this server has kept: there the call cannot be missing.
        """
        if self._continues and call_id not in self._names:
            raise LookupError(f"no function_call before it has the call_id {(call_id or '')[:80]!r}")
        self.end()
        message: ChatMessage = {"role": "tool", "content": output}
        if call_id:
            message["tool_call_id"] = call_id
        if name := self._names.get(call_id or "", name):
            message["name"] = name
        self._add(message)

    def end(self) -> list[ChatMessage]:
        """Return all messages; thinking that nothing has followed becomes a message without content."""
        if self._thinking:
            self._add({"role": "assistant", "content": ""})
        return self.messages

    def _add(self, message: ChatMessage) -> None:
        self._calling = message["role"] == "assistant"
        if self._thinking and self._calling:
            message["reasoning_content"] = "".join(self._thinking)
            self._thinking.clear()
        self.messages.append(message)
