"""`Conversation`: messages for a chat template, made of a request's items or messages, of whichever interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta

from tokenweir.stream.serve.wire.contents import Content
from tokenweir.stream.serve.wire.response_object import FunctionCallItem, Item, MessageItem, ReasoningItem, text_of

ChatMessage = dict[str, Any]
"""A message for a chat template: `role` and `content`, a text or parts; for the assistant perhaps `reasoning_content` and `tool_calls`, for
a tool `tool_call_id` and `name`."""


FunctionName = Annotated[str, Meta(max_length=256)]
"""The name of a called function. Each result of a call repeats it, so a long one would multiply a short request."""


class Conversation:
    """Messages that grow by one item after the other.

    What an assistant thought, said and called becomes one message, as templates want it, where the items follow each
    other in this order.

    Attributes:
        messages: The messages; complete once `end` was called.

    """

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        self.messages = list(messages)
        self._thinking = ""
        self._calling = False  # whether a call would belong to the last message
        calls = [call for message in self.messages for call in message.get("tool_calls", ())]
        self._names = {
            call["id"]: call["function"]["name"] for call in reversed(calls)
        }  # of two with one id, the first

    def say(self, role: str, content: Content) -> None:
        """A message; `developer` becomes `system`, which is the role that templates know."""
        if role != "assistant":
            self.end()
        self._add({"role": "system" if role == "developer" else role, "content": content})

    def think(self, text: str) -> None:
        """Thinking of the assistant, which belongs to the message or call after it."""
        self._thinking += text

    def call(self, call_id: str, name: str, arguments: str) -> None:
        """A call of a function; `arguments` is JSON text, which `ChatTemplate` parses for templates that want objects."""
        if self._thinking or not self._calling:
            self._add({"role": "assistant", "content": ""})
        function = {"name": name, "arguments": arguments}
        calls = self.messages[-1].setdefault("tool_calls", [])
        calls.append({"id": call_id, "type": "function", "function": function})
        self._names.setdefault(call_id, name)

    def answer(self, call_id: str, output: Content) -> None:
        """Add the result of the call of this id; raise `LookupError` if there was no such call."""
        self.end()
        name = self._names.get(call_id)
        if name is None:
            raise LookupError(f"no function_call before it has the call_id {call_id[:80]!r}")
        self._add({"role": "tool", "content": output, "tool_call_id": call_id, "name": name})

    def repeat(self, item: Item) -> bool:
        """Add an item of an answer; returns False for a call that is incomplete, whose arguments templates refuse."""
        match item:
            case MessageItem():
                self.say("assistant", text_of(item))
            case ReasoningItem():
                self.think(text_of(item))
            case FunctionCallItem(status="completed"):
                self.call(item.call_id, item.name, item.arguments)
            case FunctionCallItem():
                return False
        return True

    def end(self) -> list[ChatMessage]:
        """Return all messages; thinking at the end becomes a message without content."""
        if self._thinking:
            self._add({"role": "assistant", "content": ""})
        return self.messages

    def _add(self, message: ChatMessage) -> None:
        self._calling = message["role"] == "assistant"
        if self._thinking and self._calling:
            message["reasoning_content"], self._thinking = self._thinking, ""
        self.messages.append(message)
