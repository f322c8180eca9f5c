"""How many ids were thinking, and whether that is as many as it may be."""

from __future__ import annotations

from typing import Any, ClassVar

from tokenweir.stream.decode.parsers.base import Saved


class ThinkingMeter(Saved):
    """Counts the ids of thinking from when it begins to when it ends, rather than one by one.

    Args:
        budget: How many ids of thinking there may be; None for any number.
        max_tokens: How many ids of all there may be.

    Attributes:
        budget: As given.
        on: Whether the ids that go out count as thinking.
        spent: Whether the budget has been spent.

    """

    __slots__ = ("_max_tokens", "_total", "budget", "on", "spent")

    SAVED: ClassVar[dict[str, Any]] = {"on": bool, "spent": bool, "_total": int}

    def __init__(self, budget: int | None, max_tokens: int | None) -> None:
        self.on = self.spent = False
        self.budget = budget
        self._max_tokens = max_tokens
        self._total = 0  # while thinking goes on, less the ids that had gone out before it

    def tokens(self, passed: int) -> int:
        """How many ids have counted once `passed` have gone out."""
        return self._total + passed if self.on else self._total

    def switch(self, on: bool, passed: int) -> None:
        """Begin or end to count, after `passed` ids have gone out."""
        self.on = on
        self._total += -passed if on else passed

    def spends(self, count: int) -> bool:
        """Whether the id that made it `count` ids has reached the budget."""
        limit = self._limit()
        return limit is not None and count >= limit

    def spend(self) -> None:
        """Spend the budget."""
        self.spent = True

    def _limit(self) -> int | None:
        """With how many ids the budget is spent, if thinking goes on until then."""
        return self.budget - self._total if self.on and self.budget is not None and not self.spent else None

    def next_limit(self) -> int | None:
        """Which id is the next to look at closely."""
        return min((n for n in (self._max_tokens, self._limit()) if n is not None), default=None)
