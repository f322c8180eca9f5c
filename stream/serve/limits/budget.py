"""Memory budgets: bytes held for connections, of each client and in all."""

from __future__ import annotations

from collections import Counter
from typing import Protocol


class Holder(Protocol):
    """A client's connection that holds bytes of a budget.

    Attributes:
        client: The name of the client.

    """

    client: str

    def abort(self, reason: str) -> None:
        """Reset the connection, which frees the bytes that it holds at once; `reason` is counted in the metrics."""
        ...


class ByteBudget:
    """Budget of bytes that connections hold, for each client and in total.

    A connection that takes its client above the bound is reset. Above the total, the largest connections of the client
    with most bytes are reset.

    Args:
        per_client: Most bytes of one client.
        total: Most bytes of all clients.
        reason: The reason that is given when a connection is reset.

    Attributes:
        held: Bytes that all connections hold.

    """

    def __init__(self, per_client: int, total: int, reason: str) -> None:
        self.held = 0
        self._per_client = per_client
        self._total = total
        self._reason = reason
        self._clients: Counter[str] = Counter()
        self._sizes: dict[Holder, int] = {}

    def of(self, holder: Holder) -> int:
        """Return the number of bytes that a connection holds."""
        return self._sizes.get(holder, 0)

    def has_room(self, client: str, size: int) -> bool:
        """Return whether the client may hold `size` more bytes within its own bound; that of all clients is not checked."""
        return self._clients[client] + size <= self._per_client

    def hold(self, holder: Holder, size: int) -> None:
        """Set the number of bytes that a connection holds to `size`; reset connections if a bound is exceeded by it."""
        before = self._sizes.pop(holder, 0)
        if size:
            self._sizes[holder] = size
        client = holder.client
        self.held += size - before
        self._clients[client] += size - before
        if not self._clients[client]:
            del self._clients[client]
        if size <= before:
            return
        if not self.has_room(client, 0):
            holder.abort(self._reason)
        while self.held > self._total:
            [(greediest, _)] = self._clients.most_common(1)
            theirs = (each for each in self._sizes if each.client == greediest)
            max(theirs, key=self._sizes.__getitem__).abort(self._reason)
