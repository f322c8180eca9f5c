"""Memory budgets: bytes held for clients, for each and in all."""

from __future__ import annotations

from collections import Counter


class ByteBudget:
    """Bytes held for clients.

    Args:
        per_client: The most that one client may have.
        total: The most that all may have.

    Attributes:
        held: Bytes of all clients.

    """

    def __init__(self, per_client: int, total: int) -> None:
        self.held = 0
        self._per_client = per_client
        self._total = total
        self._clients: Counter[str] = Counter()

    def change(self, client: str, difference: int) -> None:
        """Count bytes that a client gets, or gives back."""
        self.held += difference
        self._clients[client] += difference
        if not self._clients[client]:
            del self._clients[client]

    def has_room(self, client: str, size: int = 1) -> bool:
        """Return whether a client may have so many bytes more by its own limit."""
        return self._clients[client] + size <= self._per_client

    def has_room_for_all(self, size: int = 1) -> bool:
        """Return whether the limit of all clients has room for so many bytes more."""
        return self.held + size <= self._total

    def greediest(self) -> str:
        """Return the client that has most."""
        return self._clients.most_common(1)[0][0]
