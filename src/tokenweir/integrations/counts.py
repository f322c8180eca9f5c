"""Counts of calls: which ran on tokenweir, which on the original library, and why."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import NamedTuple

from tokenweir.encode.base.platform import call_after_fork

MAX_ROUTES = 10_000
"""The most routes that are counted one by one; further ones count as a route without a name and a reason."""


class Route(NamedTuple):
    """A kind of calls that are counted together.

    Attributes:
        name: The name of the tokenizer, or the beginning of the template.
        call: The method, such as `"encode_batch"`.
        reason: The reason why the original library ran it; None if tokenweir did.

    """

    name: str
    call: str
    reason: str | None


_counts: Counter[Route] = Counter()
_lock = Lock()


def _renew_lock() -> None:
    global _lock
    _lock = Lock()


call_after_fork(_renew_lock)  # another thread may have held it


def count(name: str, call: str, reason: str | None = None, n: int = 1) -> None:
    """Add `n` to the count of a kind of calls.

    Args:
        name: As in `Route`.
        call: As in `Route`.
        reason: As in `Route`.
        n: The number of calls.

    """
    route = Route(name, call, reason)
    with _lock:
        if len(_counts) >= MAX_ROUTES and route not in _counts:
            route = Route("", call, None if reason is None else "other")
        _counts[route] += n


def report(*, reset: bool = False) -> dict[Route, int]:
    """Return the number of calls of each kind since the start of the process or the last reset.

    Args:
        reset: Set all counts to 0 afterwards.

    Returns:
        Counts by route. Those of the original library come first, then those of tokenweir, each in descending order.

    """
    with _lock:
        found = dict(_counts)
        if reset:
            _counts.clear()
    return dict(sorted(found.items(), key=lambda item: (item[0].reason is None, -item[1])))
