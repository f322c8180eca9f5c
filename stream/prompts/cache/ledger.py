"""Ledger of the memory that clients hold between requests: one bound in bytes, fair between clients."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from threading import Lock
from typing import NamedTuple

ENTRY_BYTES = 512
"""Bytes that an entry costs besides its content: keys, objects and tables. Without them, tiny entries would be free."""


class LedgerEntry:
    """Memory that a client holds, as a `Ledger` counts it, until it is released or evicted.

    Attributes:
        client: The client that it counts for.
        size: Bytes, `ENTRY_BYTES` included.
        is_cache: Whether the content can be computed again, so that it is evicted before the client's other entries.

    """

    __slots__ = ("_drop", "client", "is_cache", "size")

    def __init__(self, client: str, size: int, drop: Callable[[], object], *, is_cache: bool = False) -> None:
        self.client = client
        self.size = size
        self.is_cache = is_cache
        self._drop: Callable[[], object] | None = drop


class _ClientEntries(NamedTuple):
    """Entries of one client, the oldest first: caches, which are evicted first, and others."""

    caches: dict[LedgerEntry, None]
    others: dict[LedgerEntry, None]

    def of(self, entry: LedgerEntry) -> dict[LedgerEntry, None]:
        return self.caches if entry.is_cache else self.others

    def oldest(self) -> LedgerEntry:
        return next(iter(self.caches or self.others))


class Ledger:
    """Memory budget for data that a server keeps for its clients and can drop: conversations, cached prompts.

    Over the bound, the oldest entry of the client that holds most bytes is evicted, as often as needed, caches first.
    A client that fills the budget therefore loses its own entries only, and its caches push out none of its conversations.

    Threads may share it. An entry's `drop` is called in the thread whose call of `enter` evicts the entry.

    Args:
        max_bytes: Most bytes of all entries together.
        on_evict: Called with each evicted entry, after its `drop`, in the same thread.

    Attributes:
        bytes: Bytes of all entries.
        on_evict: Called with each evicted entry, after its `drop`.

    """

    def __init__(self, max_bytes: int, on_evict: Callable[[LedgerEntry], object] = lambda _: None) -> None:
        self.bytes = 0
        self._max_bytes = max_bytes
        self.on_evict = on_evict
        self._entries: dict[str, _ClientEntries] = {}
        self._held: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []  # (-bytes, client); outdated pairs stay until they come to the top
        self._lock = Lock()

    def __len__(self) -> int:
        return sum(len(own.caches) + len(own.others) for own in self._entries.values())

    def held(self, client: str) -> int:
        """Return the bytes of all entries of a client; 0 for an unknown client."""
        return self._held.get(client, 0)

    def enter(self, client: str, size: int, drop: Callable[[], object], *, is_cache: bool = False) -> LedgerEntry:
        """Add an entry for memory of a client, and evict the oldest entries until all fit in the bound.

        Args:
            client: The client that the memory counts for.
            size: Bytes of the memory.
            drop: Frees the memory; called when the entry is evicted. That is before this method returns if the entry alone is
                larger than the bound, in which case no other is evicted, or if it is itself the one to evict.
            is_cache: Whether the content can be computed again, so that it is evicted before the client's other entries.

        Returns:
            The entry, for `leave`.

        """
        entry = LedgerEntry(client, size + ENTRY_BYTES, drop, is_cache=is_cache)
        evicted = []
        with self._lock:
            if entry.size > self._max_bytes:
                evicted.append(entry)
            else:
                self._entries.setdefault(client, _ClientEntries({}, {})).of(entry)[entry] = None
                self._change(client, entry.size)
            while self.bytes > self._max_bytes:
                oldest = self._entries[self._greediest()].oldest()
                self._remove(oldest)
                evicted.append(oldest)
        for one in evicted:
            if (free := one._drop) is not None:
                one._drop = None
                free()
                self.on_evict(one)
        return entry

    def leave(self, entry: LedgerEntry) -> None:
        """Remove an entry whose memory its owner has freed, without calling `drop`; a no-op for an evicted one."""
        with self._lock:
            entry._drop = None  # which may refer back to the entry's owner
            if (own := self._entries.get(entry.client)) is not None and entry in own.of(entry):
                self._remove(entry)

    def _remove(self, entry: LedgerEntry) -> None:
        own = self._entries[entry.client]
        del own.of(entry)[entry]
        if not own.caches and not own.others:
            del self._entries[entry.client]
        self._change(entry.client, -entry.size)

    def _change(self, client: str, size: int) -> None:
        self.bytes += size
        held = self._held.get(client, 0) + size
        if held:
            self._held[client] = held
            heappush(self._heap, (-held, client))
        else:
            del self._held[client]
        if len(self._heap) > 2 * len(self._held) + 64:
            self._heap = [(-held, client) for client, held in self._held.items()]
            heapify(self._heap)

    def _greediest(self) -> str:
        """Return the client with the most bytes."""
        while True:
            held, client = self._heap[0]
            if self._held.get(client) == -held:
                return client
            heappop(self._heap)
