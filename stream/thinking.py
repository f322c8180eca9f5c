"""How many ids were thinking, and whether that is as many as it may be."""

from __future__ import annotations


class ThinkingMeter:
    """Counts the ids of thinking from when it begins to when it ends, rather than one by one.

    Attributes:
        on: Whether the ids that go out count as thinking.
        spent: Whether the budget has been reported as spent.

    """

    __slots__ = ("_budget", "_total", "on", "spent")

    def __init__(self, budget: int | None) -> None:
        self.on = self.spent = False
        self._budget = budget
        self._total = 0  # while thinking goes on, less the ids that had gone out before it

    def switch(self, on: bool, passed: int) -> None:
        """Begin or end to count, after `passed` ids of the answer have gone out."""
        self.on = on
        self._total += -passed if on else passed

    def tokens(self, passed: int) -> int:
        """How many ids have counted once `passed` have gone out."""
        return self._total + passed if self.on else self._total

    @property
    def limit(self) -> int | None:
        """How many ids must have come for the budget to be spent, if thinking goes on; None if that is to be no event."""
        return self._budget - self._total if self.on and self._budget is not None and not self.spent else None

    def spends(self, count: int) -> bool:
        """Whether the id that made it `count` ids has reached the budget."""
        limit = self.limit
        return limit is not None and count >= limit
