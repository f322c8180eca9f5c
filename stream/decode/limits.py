"""Token limits: the maximum length of an answer, and the budget of its thinking."""

from __future__ import annotations

from typing import Any, ClassVar

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.saved import Saved


class Limits(Saved):
    """Token limits of one answer.

    Args:
        max_tokens: Most ids of the answer; None for no limit.
        thinking_budget: Most ids of thinking; None for no limit.

    Attributes:
        any: Whether either limit is set.
        spent: Whether the thinking budget is used up.

    """

    SAVED: ClassVar[dict[str, Any]] = {"spent": bool}

    def __init__(self, max_tokens: int | None, thinking_budget: int | None) -> None:
        self._max_tokens, self._budget = max_tokens, thinking_budget
        self.any = max_tokens is not None or thinking_budget is not None
        self.spent = False

    def reached(self, answer: _core.AnswerText) -> bool:
        """Return whether the answer has `max_tokens` ids or more; false without such a limit."""
        return self._max_tokens is not None and answer.count >= self._max_tokens

    def spend(self, answer: _core.AnswerText) -> bool:
        """Return whether the last id has used up the thinking budget, and if so set `spent`."""
        reached = self._left(answer) == 0
        self.spent = self.spent or reached
        return reached

    def next(self, answer: _core.AnswerText) -> int | None:
        """Return the number of ids of the answer at which a limit is next reached, if all further ids are thinking.

        Return None if no limit can be reached.
        """
        left = self._left(answer)
        limits = [] if left is None else [answer.count + left]
        return min([*limits, self._max_tokens] if self._max_tokens is not None else limits, default=None)

    def _left(self, answer: _core.AnswerText) -> int | None:
        """Return how many ids are left in the thinking budget; 0 if it is used up and `spent` is not set yet.

        Return None without a budget, once `spent` is set, or while the text is not thinking.
        """
        if self._budget is None or self.spent or not answer.thinks:
            return None
        return max(0, self._budget - answer.thought)
