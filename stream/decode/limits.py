"""The numbers of ids at which an answer ends, or its thinking has had as many as it may have."""

from __future__ import annotations

from typing import Any, ClassVar

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.base import Saved


class Limits(Saved):
    """How many ids one answer may have, and how many of thinking.

    Args:
        max_tokens: How many of all; None for any number.
        thinking_budget: How many of thinking, likewise.

    Attributes:
        any: Whether there is a limit.
        spent: Whether the thinking has spent its budget.

    """

    __slots__ = ("_budget", "_max_tokens", "any", "spent")

    SAVED: ClassVar[dict[str, Any]] = {"spent": bool}

    def __init__(self, max_tokens: int | None, thinking_budget: int | None) -> None:
        self._max_tokens, self._budget = max_tokens, thinking_budget
        self.any = max_tokens is not None or thinking_budget is not None
        self.spent = False

    def reached(self, answer: _core.AnswerText) -> bool:
        """Whether the answer has as many ids as it may have."""
        return self._max_tokens is not None and answer.count >= self._max_tokens

    def spend(self, answer: _core.AnswerText) -> bool:
        """Spend the budget if the last id has reached it; say whether it has."""
        reached = self._left(answer) == 0
        self.spent = self.spent or reached
        return reached

    def next(self, answer: _core.AnswerText) -> int | None:
        """Which id reaches the next limit if thinking goes on until then; None if none does."""
        left = self._left(answer)
        limits = [] if left is None else [answer.count + left]
        return min([*limits, self._max_tokens] if self._max_tokens is not None else limits, default=None)

    def _left(self, answer: _core.AnswerText) -> int | None:
        """How many more ids spend the budget if all are thinking; None if nothing is going to spend it."""
        if self._budget is None or self.spent or not answer.thinks:
            return None
        return max(0, self._budget - answer.thought)
