"""`ask()`: one answer, without `async`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, ParamSpec

import anyio
from msgspec import Struct

from tokenweir.stream.chat.cancellable import Deltas
from tokenweir.stream.chat.chat import chat
from tokenweir.stream.chat.context import Context
from tokenweir.stream.chat.message import AssistantMessage
from tokenweir.stream.events.deltas import Finish

P = ParamSpec("P")


class Answer(Struct, frozen=True):
    """A whole answer.

    Attributes:
        message: The assistant message, to append to the conversation: `content`, `reasoning_content`, `tool_calls`.
        finish: The reason of the end, and the usage.

    """

    message: dict[str, Any]
    finish: Finish

    @property
    def text(self) -> str:
        """The answer's text, without thinking and tool calls."""
        content: str = self.message["content"]
        return content


def _takes_arguments_of(other: Callable[P, Context[Deltas]]) -> Callable[[Callable[..., Answer]], Callable[P, Answer]]:
    def decorate(function: Callable[..., Answer]) -> Callable[P, Answer]:
        function.__signature__ = signature(other).replace(return_annotation=Answer)  # type: ignore[attr-defined]
        return function

    return decorate


@_takes_arguments_of(chat)
def ask(*args: Any, **options: Any) -> Answer:
    """Return one whole answer, for scripts; takes the arguments of `chat()` and raises its errors.

        answer = ask(messages, engine=engine, tokenizer=tokenizer)
        print(answer.text)

    Raises:
        RuntimeError: An event loop runs in this thread; use `chat()` there.
        ValueError: `sampling.n` is above 1.

    """
    if getattr(options.get("sampling"), "n", 1) > 1:
        raise ValueError("ask() returns one answer: use chat() for sampling.n above 1")
    return anyio.run(partial(_ask, *args, **options))


async def _ask(*args: Any, **options: Any) -> Answer:
    message = AssistantMessage()
    async with chat(*args, **options) as deltas:
        async for delta in deltas:
            message.add(delta)
    assert isinstance(delta, Finish)  # the last delta of every answer
    return Answer(message.as_dict(), delta)
