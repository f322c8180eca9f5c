"""Whether the thinking has had as many ids as it may have."""

from __future__ import annotations

from typing import Any, ClassVar

from tokenweir.encode import _core
from tokenweir.stream.decode.parsers.base import Saved


class ThinkingBudget(Saved):
    """Tells when an answer's thinking has spent its budget: once, while thinking goes on.

    Args:
        budget: How many ids of thinking there may be; None for any number.

    Attributes:
        spent: Whether the budget has been spent.

    """

    __slots__ = ("_budget", "spent")

    SAVED: ClassVar[dict[str, Any]] = {"spent": bool}

    def __init__(self, budget: int | None) -> None:
        self.spent = False
        self._budget = budget

    def left(self, answer: _core.AnswerText) -> int | None:
        """How many more ids spend the budget if all are thinking; None if nothing is going to spend it."""
        if self._budget is None or self.spent or not answer.thinks:
            return None
        return max(0, self._budget - answer.thought)
