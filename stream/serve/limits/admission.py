"""Admission: bounds on concurrent connections and answers, per client and in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tokenweir.stream.serve.limits.limits import Limits
from tokenweir.stream.serve.wire.shared.errors import RequestError


class Admission:
    """Counters of open connections and running answers, per client and in total, with their limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connections: Counter[str] = Counter()
        self._running: Counter[str] = Counter()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self._connections.total()

    @property
    def generations(self) -> int:
        """The number of running answers."""
        return self._running.total()

    def connect(self, client: str) -> Callable[[], None]:
        """Take a place for a client's websocket or HTTP request and return the function that frees it.

        Raise `RequestError` if no place is free: status 429 for the client's bound, 503 for the server's.
        """
        limits = self._limits
        most, most_of_client = limits.max_connections, limits.max_connections_per_client
        return _take(self._connections, client, most_of_client, most, "connections", "open")

    def generate(self, client: str) -> Callable[[], None]:
        """Take a place for a running answer and return the function that frees it; raise `RequestError` as `connect`."""
        limits = self._limits
        most, most_of_client = limits.max_generations, limits.max_generations_per_client
        return _take(self._running, client, most_of_client, most, "answers", "at work")


def _take(
    places: Counter[str], client: str, most_of_client: int, most: int, what: str, state: str
) -> Callable[[], None]:
    """Count one more of a client; return a function that counts it off when it is first called."""
    if places[client] >= most_of_client:
        raise too_many(what, most_of_client)
    if places.total() >= most:
        raise full(f"{most} {what} are {state}, which is the limit")
    places[client] += 1
    taken = [client]

    def free() -> None:
        if taken:
            places.subtract(taken)
            taken.clear()
            if not places[client]:
                del places[client]

    return free


@contextmanager
def undone_by(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if the block raises, an exception of any kind."""
    try:
        yield
    except BaseException:
        undo()
        raise


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
