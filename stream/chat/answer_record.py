"""`AnswerRecord`: collects the ids of an answer and the message that its reader gets, for a prompt cache."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tokenweir.stream.chat.message import AssistantMessage
from tokenweir.stream.decode.transforms import DecodeChat
from tokenweir.stream.events.deltas import Delta, Finish, FinishReason
from tokenweir.stream.events.step import EngineStep

logger = logging.getLogger("tokenweir.prompts")

WHOLE = frozenset({FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS})
"""Reasons of answers that were delivered as the engine meant them, or up to a limit."""


class Keep(Protocol):
    """Callback that stores an answer to a prompt, such as `PromptCache.answered` with the prompt bound."""

    def __call__(self, ids: list[int], message: Mapping[str, Any], *, inferred: list[int]) -> object:
        """Store the ids of an answer with its message.

        Args:
            ids: All ids of the answer.
            message: The assistant message that was delivered.
            inferred: Indices in `ids` of those that the engine did not tell and that were inferred from its text.

        """
        ...


class AnswerRecord:
    """Transform that decodes an answer, and at its end stores its ids if its message was delivered as a whole.

    A cancelled or failed answer is not stored, nor one with a call that is malformed or cut short. An error of storing is
    logged, and does not fail the answer.

    Args:
        decoder: Decodes the items of the engine.
        keep: Called once with the ids and the message, before the last delta is returned.

    """

    __slots__ = ("_decoder", "_ids", "_inferred", "_keep", "_message")

    def __init__(self, decoder: DecodeChat, keep: Keep) -> None:
        self._decoder = decoder
        self._keep = keep
        self._ids: list[int] = []
        self._inferred: list[int] = []
        self._message = AssistantMessage()

    @property
    def finished(self) -> bool:
        """Whether the answer has ended, so that no more items are needed."""
        return self._decoder.finished

    def feed(self, item: Any) -> Sequence[Delta]:
        """Decode an item that the engine yielded; return the deltas that are final by it."""
        if isinstance(item, EngineStep) and item.inferred:
            start = self._decoder.consumed
            self._inferred += range(start, start + item.inferred)
        return self._take(self._decoder.feed(item))

    def finish(self, failure: Exception | None) -> Sequence[Delta]:
        """Return the last deltas, after the engine's stream has ended or failed; `failure` is its error or None."""
        return self._take(self._decoder.finish(failure))

    def _take(self, deltas: Sequence[Delta]) -> Sequence[Delta]:
        for delta in deltas:
            self._ids += delta.token_ids
            self._message.add(delta)
            if isinstance(delta, Finish) and delta.reason in WHOLE and self._message.is_whole:
                self._store()
        return deltas

    def _store(self) -> None:
        inferred = [index for index in self._inferred if index < len(self._ids)]
        try:
            self._keep(self._ids, self._message.as_dict(), inferred=inferred)
        except Exception:
            logger.exception("an answer was delivered, but its ids could not be kept")
