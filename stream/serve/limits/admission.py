"""Admission: bounds on concurrent connections and answers, per client and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.shared.errors import RequestError


class Admission:
    """Counters of open connections and running answers, per client and in total, with their limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: Counter[str] = Counter()
        self._running: Counter[str] = Counter()
        self.connections = 0
        self.generations = 0

    def connect(self, client: str) -> Callable[[], None]:
        """Take a place for a socket or a request and return the function that frees it.

        Raise `RequestError` if no place is free: status 429 for the client's bound, 503 for the server's.
        """
        limits = self._limits
        if self._connections[client] >= limits.max_connections_per_client:
            raise too_many("connections", limits.max_connections_per_client)
        if self.connections >= limits.max_connections:
            raise full(f"{limits.max_connections} connections are open, which is the limit")
        self._connections[client] += 1
        self.connections += 1

        def free() -> None:
            self.connections -= 1
            _decrease(self._connections, client)

        return _once(free)

    def generate(self, client: str) -> Callable[[], None]:
        """Take a place for a running answer and return the function that frees it; raises as `connect`."""
        limits = self._limits
        if self._running[client] >= limits.max_generations_per_client:
            raise too_many("answers", limits.max_generations_per_client)
        if self.generations >= limits.max_generations:
            raise full(f"{limits.max_generations} answers are at work, which is the limit")
        self._running[client] += 1
        self.generations += 1

        def free() -> None:
            self.generations -= 1
            _decrease(self._running, client)

        return _once(free)


def too_many(what: str, limit: int) -> RequestError:
    """Return the error, with status 429, for a client that already has as many of something as it may.

    `what` names it, such as "connections", and `limit` is the most.
    """
    return RequestError(
        f"you have {limit} {what} at once, which is the limit", code="rate_limit_exceeded", status=429, retry_after=1
    )


def full(message: str) -> RequestError:
    """Return the error, with status 503, for a request that the server has no room for."""
    return RequestError(message, code="server_overloaded", status=503, retry_after=1)


def _decrease(counts: Counter[str], client: str) -> None:
    counts[client] -= 1
    if not counts[client]:
        del counts[client]


def _once(free: Callable[[], None]) -> Callable[[], None]:
    """Return a function that calls `free` the first time it is called, and does nothing later."""
    taken = [free]

    def release() -> None:
        if taken:
            taken.pop()()

    return release
