"""`AnswerRecord`: the ids of an answer beside the message that its reader gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tokenweir.stream.decode.transforms import DecodeChat
from tokenweir.stream.events.deltas import Delta, Finish, FinishReason, ReasoningDelta, TextDelta, ToolCallDelta
from tokenweir.stream.events.step import EngineStep

WHOLE = frozenset({FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS})
"""Reasons of answers that were delivered as the engine meant them, or up to a limit."""


class Keep(Protocol):
    """Callback that keeps an answer: `PromptCache.answered` for one prompt."""

    def __call__(self, ids: list[int], message: Mapping[str, Any], *, inferred: list[int]) -> object:
        """Keep the ids of a message; `inferred` are the places of those that the engine did not tell."""
        ...


class AnswerRecord:
    """Decoding of an answer that ends by keeping its ids, if its message was delivered as a whole.

    A cancelled or failed answer is not kept, nor one with a call that is malformed or cut short.

    Args:
        keep: Called once, before the last delta is given out.

    """

    __slots__ = ("_calls", "_decoder", "_ids", "_inferred", "_is_whole", "_keep", "_open", "_text", "_thinking")

    def __init__(self, decoder: DecodeChat, keep: Keep) -> None:
        self._decoder = decoder
        self._keep = keep
        self._ids: list[int] = []
        self._inferred: list[int] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._open = False  # the last call is not complete
        self._is_whole = True

    @property
    def finished(self) -> bool:
        """Whether the output has ended."""
        return self._decoder.finished

    def feed(self, item: Any) -> Sequence[Delta]:
        """Decode an item of the engine."""
        if isinstance(item, EngineStep) and item.inferred:
            start = self._decoder.consumed
            self._inferred += range(start, start + item.inferred)
        return self._take(self._decoder.feed(item))

    def finish(self, failure: Exception | None) -> Sequence[Delta]:
        """Return the last deltas, after the end of the engine or its failure."""
        return self._take(self._decoder.finish(failure))

    def _take(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        for delta in deltas:
            self._ids += delta.token_ids
            match delta:
                case TextDelta():
                    self._text.append(delta.text)
                case ReasoningDelta():
                    self._thinking.append(delta.text)
                case ToolCallDelta():
                    self._call(delta)
                case Finish() if delta.reason in WHOLE and self._is_whole and not self._open:
                    self._keep(self._ids, self._message(), inferred=[n for n in self._inferred if n < len(self._ids)])
        return deltas

    def _call(self, delta: ToolCallDelta) -> None:
        if delta.name:
            self._is_whole = self._is_whole and not self._open
            self._open = True
            function = {"name": delta.name, "arguments": ""}
            self._calls.append({"id": delta.id, "type": "function", "function": function})
        self._calls[-1]["function"]["arguments"] += delta.arguments
        if delta.malformed is not None:
            self._is_whole = False
        if delta.complete:
            self._open = False

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._thinking:
            message["reasoning_content"] = "".join(self._thinking)
        if self._calls:
            message["tool_calls"] = self._calls
        return message
